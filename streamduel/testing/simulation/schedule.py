"""One schedule: several processes, a cluster and a nemesis, all driven by one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from operator import add
from typing import Any, Final

import structlog
from greenlet import getcurrent, greenlet
from structlog.typing import EventDict

from streamduel.errors import ConnectorError, SnapshotError
from streamduel.testing.simulation.cluster import Cluster, NotReady, Place, Transaction
from streamduel.testing.simulation.group import Refused
from streamduel.testing.simulation.history import History, Violation
from streamduel.testing.simulation.nemesis import Nemesis
from streamduel.testing.simulation.operator import Operator, Repair
from streamduel.testing.simulation.process import Process
from streamduel.testing.simulation.replacement import Replacement
from streamduel.testing.simulation.workload import workload

MAX_TURNS: Final = 20_000
"""Turns after the last fault within which everything must be processed; a few hundred suffice."""

SHOWN: Final = 60
"""Steps before a failure that its message contains."""


class Failure(AssertionError):  # noqa: N818 - of a schedule
    """A schedule ended badly; the message says how to repeat it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened in a schedule.

    Attributes:
        schedules: how many these are the sums of.
        turns: calls of connectors between which other processes could act.
        records: records of the click log.
        processes: processes that ran, one after another or at a time.
        commits: transactions that committed.
        faults: what the nemesis did.
    """

    schedules: int = 0
    turns: int = 0
    records: int = 0
    processes: int = 0
    commits: int = 0
    faults: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        """The sums of both."""
        return Outcome(*map(add, astuple(self), astuple(other)))


class Schedule:
    """A run of the service in simulated time.

    Args:
        seed: determines the configuration, the click log, every choice and every fault.

    Attributes:
        cluster: the model of Kafka.
        workload: configuration and click log.
        config: the configuration of the processes that start.
        trace: time, actor and step, in order.
        late: requests that are still on their way.
        instances: how many processes are wanted.
        repair: what an operator repairs, with all other processes stopped.
        damaged: a snapshot was damaged, so that a process may refuse it.
        held_until: no marker is written and no record becomes readable before this time.
        slow: where no marker is written before the time `slow_until`.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.seed = seed
        self.trace: list[tuple[int, str, str]] = []
        self.workload = workload(rng)
        self.config = self.workload.config
        self.history = History(self.workload)
        self.session_ms = rng.choice((100, 400))
        self.cluster = Cluster(
            self.workload.clicks, self.workload.controls, rng, self.session_ms,
            rng.choice((300, 1500)), self._committed,
        )  # fmt: skip
        self.thread = getcurrent()
        self.late: list[Callable[[], object]] = []
        self.held_until = self.slow_until = 0
        self.slow: Place | None = None
        self.damaged = False
        self.instances = rng.randint(1, 3)
        self.repair: Repair | Replacement | None = None
        self._rng = rng
        self._processes: list[Process] = []
        self._started = self._commits = self._turns = 0
        self._stay = rng.choice((0.0, 0.5, 0.9))
        self._last: greenlet | None = None
        self._nemesis = Nemesis(self, rng)
        self._faults_until = rng.choice((200, 600, 1500))
        # The producers write about as long as there are faults.
        self._pace = 0.6 * sum(map(len, self.workload.clicks)) / self._faults_until

    # Processes.

    def names(self) -> list[str]:
        """The names of the wanted processes; none while an operator repairs."""
        if self.repair is not None:
            return []
        return [f"streamduel-{number}" for number in range(self.instances)]

    def running(self) -> list[Process]:
        """The processes that are alive."""
        return [process for process in self._processes if process.alive]

    def start(self, name: str) -> None:
        """Start a process."""
        self._started += 1
        self._processes.append(Process(self, name, self.config))

    def _orchestrate(self) -> None:
        """Start what is wanted and does not run."""
        for process in self._processes:
            if not process.alive:
                self._check_exit(process)
                process.crash()
        self._processes = self.running()
        if self.repair is not None and not self._processes:
            self._operate(self.repair)
            return
        names = self.names()
        present = {process.name for process in self._processes}
        for process in self._processes:
            process.stopping = process.name not in names  # an operator does not listen
        for name in names:
            if name not in present:
                self.start(name)

    def _operate(self, repair: Repair | Replacement) -> None:
        """Start an operator, until one has repaired what is to be repaired."""
        if repair.done:
            self.repair = None
        elif repair.begin(self.cluster):
            self._started += 1
            self._processes.append(Operator(self, repair))

    def _check_exit(self, process: Process) -> None:
        error = process.exited
        displaced = isinstance(error, ConnectorError) and "taken" in str(error)
        if isinstance(error, SnapshotError) and self.damaged:
            self.cluster.repair()
        elif error is not None and not displaced and not isinstance(process, Operator):
            raise Violation(f"{process.name} ended: {type(error).__name__}: {error}")

    def _committed(self, transaction: Transaction) -> None:
        self._commits += 1
        self.trace.append(
            (self.cluster.now, transaction.producer, f"COMMITS {transaction.offsets}")
        )
        self.history.committed(transaction, self.cluster)

    def _report(self, error: Exception) -> str:
        what = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
        return (
            f"seed {self.seed}: {what}\n{self.shown_trace(SHOWN)}\n"
            f"To repeat it: python -m streamduel.testing.simulation --seed {self.seed} --verbose"
        )

    def shown_trace(self, last: int | None = None) -> str:
        """The last steps, or all of them, one per line: milliseconds, who, what."""
        steps = self.trace if last is None else self.trace[-last:]
        return "\n".join(f"{now:7} {actor:12} {step}" for now, actor, step in steps)

    # Time.

    def run(self) -> Outcome:
        """Run until everything is processed.

        Raises:
            Failure: outputs or snapshots differ from those of an undisturbed run, or the service
                does not get to the end after the last fault.
        """
        with self._logs_traced():
            try:
                self._run()
            except Exception as error:
                raise Failure(self._report(error)) from error
            finally:
                for process in self.running():
                    process.crash()
        faults = sum(actor == "nemesis" for _, actor, _ in self.trace)
        records = sum(map(len, self.workload.clicks))
        return Outcome(1, self._turns, records, self._started, self._commits, faults)

    def _run(self) -> None:
        while self._turns < self._faults_until:
            self._nemesis.act()
            self._turn()
        self._heal()
        self._turn_until(self._finished, "not everything was processed")
        self.instances = 0
        self._turn_until(
            lambda: self.cluster.settled and not self.running(),
            "not every process stopped, and not every transaction ended",
        )
        self.history.check_end(self.cluster)

    @contextmanager
    def _logs_traced(self) -> Iterator[None]:
        """The application log of the processes becomes part of the trace."""
        processors = structlog.get_config()["processors"]
        former = list(processors)

        def trace(_logger: Any, level: str, event: EventDict) -> EventDict:
            self.trace.append((self.cluster.now, "log", f"{level}: {event}"))
            raise structlog.DropEvent

        processors[:] = [trace]
        try:
            yield
        finally:
            processors[:] = former

    def _turn_until(self, done: Callable[[], bool], problem: str) -> None:
        limit = self._turns + MAX_TURNS
        while not done():
            for _ in range(10):
                self._turn()
            if self._turns > limit:
                raise Violation(f"{problem} within {MAX_TURNS} turns after the last fault.")

    def _turn(self) -> None:
        """Time passes, the cluster does something, and one thread continues to its next call."""
        rng, cluster = self._rng, self.cluster
        self._turns += 1
        cluster.now += int(4 * rng.random())
        if rng.random() < 0.3:
            self._tick()
        now = cluster.now
        threads = [
            thread
            for process in self._processes
            if process.paused_until <= now
            for thread, wakes_at in process.threads.items()
            if wakes_at <= now
        ]
        if not threads:
            cluster.now += 5
        elif self._last not in threads or rng.random() >= self._stay:
            self._last = threads[int(len(threads) * rng.random())]
        if threads and self._last is not None:
            self._last.switch()

    def _tick(self) -> None:
        """The cluster and the orchestrator do what is due."""
        rng, cluster = self._rng, self.cluster
        for process in self._processes:
            if max(process.paused_until, process.cut_until) <= cluster.now:
                cluster.group.keep(process.name, cluster.now)
        cluster.expire()
        if self.late and rng.random() < 0.2:
            with suppress(Refused, NotReady):
                self.late.pop(rng.randrange(len(self.late)))()
        if rng.random() < 0.2:
            self._orchestrate()
        if cluster.now < self.held_until:
            return
        self._mark()
        partition = rng.randrange(len(cluster.clicks))
        if rng.random() < self._pace:
            cluster.high[partition] = min(
                len(cluster.clicks[partition]), cluster.high[partition] + rng.randint(1, 10)
            )
        if self.workload.controlled and rng.random() < self._pace:
            written = cluster.control_high[partition] + 1
            cluster.control_high[partition] = min(written, len(cluster.controls[partition]))
        cluster.stable[partition] = rng.randint(cluster.stable[partition], cluster.high[partition])

    def _mark(self) -> None:
        markers = self.cluster.markers
        waits = self.slow if self.cluster.now < self.slow_until else None
        due = [index for index, (_, place) in enumerate(markers) if place != waits]
        if due:
            self.cluster.mark(self._rng.choice(due))

    def _heal(self) -> None:
        """No more faults."""
        self.held_until = self.slow_until = 0
        self.cluster.repair()
        self._pace = 1.0
        self.config = self.workload.config
        for process in self.running():
            if process.config is not self.config:
                process.crash()
        for process in self._processes:
            process.paused_until = process.cut_until = 0
            process.loses = None

    def _finished(self) -> bool:
        return self.repair is None and self.history.is_complete(self.cluster)
