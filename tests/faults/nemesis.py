"""Random faults on real brokers, in the manner of Jepsen.

`python -m tests.faults.nemesis --seed 1 --minutes 10` runs one schedule.

A seed gives a schedule: when which fault of service, brokers or network begins and ends. Several
last at once. A reader checks the history while it grows; at the end everything is healed, and what
is visible is compared with an undisturbed run. The schedule is reproducible, the timing of real
processes is not: a seed that finds a defect finds it often, not always.
"""

from __future__ import annotations

import argparse
import heapq
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.broker.cluster import LocalCluster
from tests.broker.fixture import make_topics
from tests.faults.figures import Figures
from tests.faults.services import Service
from tests.faults.trial import Servers, Trial, trial

PROCESSES: Final = 3
TICK_SECONDS: Final = 0.1


class Kind(NamedTuple):
    """A kind of fault.

    Attributes:
        weight: how often, compared with the others.
        least: the shortest, in seconds.
        longest: the longest, in seconds.
    """

    weight: int
    least: float
    longest: float


KINDS: Final = {
    "kill process": Kind(6, 0.0, 5.0),
    "stop process": Kind(2, 0.0, 10.0),
    "pause process": Kind(3, 0.5, 12.0),  # the session times out after 6
    "kill broker": Kind(3, 0.0, 20.0),
    "stop broker": Kind(2, 0.0, 10.0),
    "pause broker": Kind(2, 0.5, 15.0),
    "cut": Kind(2, 0.5, 15.0),
    "cut one": Kind(2, 0.5, 20.0),
    "slow": Kind(2, 1.0, 15.0),
    "lossy": Kind(2, 1.0, 15.0),
    "reset": Kind(3, 0.0, 0.0),
}


class Fault(NamedTuple):
    """A fault of a schedule.

    Attributes:
        at: its begin, in seconds.
        seconds: how long it lasts.
        kind: one of `KINDS`.
        target: the number of the process or broker.
    """

    at: float
    seconds: float
    kind: str
    target: int

    def line(self) -> str:
        """All of it in one line."""
        return f"{self.at:7.1f} s  {self.kind} {self.target} for {self.seconds:.1f} s"


def schedule(seed: int, seconds: float) -> list[Fault]:
    """The faults of a seed; a longer schedule begins with the shorter one.

    >>> schedule(1, 60) == schedule(1, 600)[: len(schedule(1, 60))]
    True
    """
    rng = random.Random(seed)
    faults: list[Fault] = []
    at = 0.0
    while True:
        at += rng.uniform(0.5, 6.0)
        if at >= seconds:
            return faults
        kind = rng.choices(list(KINDS), [each.weight for each in KINDS.values()])[0]
        length = rng.uniform(KINDS[kind].least, KINDS[kind].longest)
        faults.append(Fault(at, length, kind, rng.randrange(PROCESSES)))


class Nemesis:
    """Inflicts a schedule.

    Args:
        cluster: three brokers, and the network to them.
        live: the service, whose processes the nemesis starts.
    """

    def __init__(self, cluster: LocalCluster, live: Trial) -> None:
        self._cluster, self._live = cluster, live
        self._processes: list[Service | None] = [None] * PROCESSES
        self._busy: set[str] = set()
        self.inflicted: Counter[str] = Counter()
        self.gave_up = 0

    def run(self, faults: list[Fault]) -> None:
        """Inflict all faults, then heal everything."""
        for number in range(PROCESSES):
            self._start(number)
        self._live.flowing()
        began = time.monotonic()
        ends: list[tuple[float, int, Callable[[], None]]] = []
        for number, fault in enumerate(faults):
            self._wait(began + fault.at, ends)
            end = self._inflict(fault)
            if end is not None:
                heapq.heappush(ends, (time.monotonic() + fault.seconds, number, end))
        while ends:
            self._wait(ends[0][0], ends)
        self._cluster.heal()
        for number in range(PROCESSES):
            self._start(number)

    def supervise(self) -> None:
        """Start processes again that have ended by themselves, as an orchestrator does."""
        for number, process in enumerate(self._processes):
            if process is not None and not process.runs:
                self.gave_up += 1
                self._processes[number] = None
                self._start(number)

    def _wait(self, until: float, ends: list[tuple[float, int, Callable[[], None]]]) -> None:
        while (now := time.monotonic()) < until or (ends and ends[0][0] <= now):
            if ends and ends[0][0] <= now:
                heapq.heappop(ends)[2]()
            self.supervise()
            time.sleep(TICK_SECONDS)

    def _start(self, number: int) -> None:
        if self._processes[number] is None:
            self._processes[number] = self._live.start()

    def _inflict(self, fault: Fault) -> Callable[[], None] | None:
        """Begin a fault; returns what ends it, or None if its target has another one."""
        whole = fault.kind in {"cut", "slow", "lossy"}
        network = whole or fault.kind == "cut one"
        what = "network" if network else f"{fault.kind.split()[-1]} {fault.target}"
        if what in self._busy:
            return None
        self.inflicted[fault.kind] += 1
        print(
            f"{fault.at:7.1f} s  {fault.kind} {fault.target} for {fault.seconds:.1f} s", flush=True
        )
        end = self._network(fault) if network or fault.kind == "reset" else self._stop(fault)
        self._busy.add(what)

        def ended() -> None:
            self._busy.discard(what)
            end()

        return ended

    def _network(self, fault: Fault) -> Callable[[], None]:
        proxies = self._cluster.proxies
        match fault.kind:
            case "cut":
                proxies.cut()
            case "cut one":
                proxies.cut(fault.target)
            case "slow":
                proxies.slow(0.5)
            case "lossy":
                proxies.lose(0.02)
            case _:
                proxies.reset(fault.target)
                return lambda: None
        return proxies.heal

    def _stop(self, fault: Fault) -> Callable[[], None]:
        number = fault.target
        node = self._cluster.nodes[number]
        process = self._processes[number]
        match fault.kind:
            case "kill broker":
                node.kill()
                return node.launch
            case "stop broker":
                # Without a majority of the others it does not end, and is killed.
                with suppress(RuntimeError):
                    node.stop()
                return node.launch
            case "pause broker":
                node.pause()
                return node.resume
            case "pause process" if process is not None:
                process.pause()
                return process.resume
        self._processes[number] = None
        if process is not None and fault.kind == "kill process":
            process.kill()
        elif process is not None:
            process.process.terminate()  # with the brokers away it ends with status 1 after 8 s
        return lambda: self._start(number)


def torment(cluster: LocalCluster, live: Trial, seed: int, seconds: float) -> Figures:
    """Inflict a schedule and compare.

    Raises:
        AssertionError: what is visible differs from an undisturbed run.
    """
    nemesis = Nemesis(cluster, live)
    began = time.monotonic()
    nemesis.run(schedule(seed, seconds))
    live.flowing(PROCESSES)
    kinds = ", ".join(f"{number} × {kind}" for kind, number in sorted(nemesis.inflicted.items()))
    note = (
        f"seed {seed}, {seconds / 60:.1f} min: {kinds}; {nemesis.gave_up} processes ended by "
        f"themselves and were started again; longest silence "
        f"{live.reader.silence(began, time.monotonic()):.1f} s"
    )
    faults = sum(nemesis.inflicted.values())
    return live.finish("nemesis: random faults, several at once", faults, note)


def main() -> None:
    parser = argparse.ArgumentParser(description="Random faults on three real brokers.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--schedule", action="store_true", help="only print the schedule")
    given = parser.parse_args()
    if given.schedule:
        for fault in schedule(given.seed, 60 * given.minutes):
            print(fault.line())
        return
    with tempfile.TemporaryDirectory() as folder, LocalCluster() as cluster:
        servers = Servers(cluster.bootstrap_servers, cluster.proxied_servers)
        topics = make_topics(cluster.bootstrap_servers, "nemesis", [])
        with trial(Path(folder), servers, topics) as live:
            print(torment(cluster, live, given.seed, 60 * given.minutes).line())


if __name__ == "__main__":
    main()
