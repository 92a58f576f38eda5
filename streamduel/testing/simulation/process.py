"""A simulated process: the real runner on a simulated source and outlet."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

from greenlet import getcurrent, greenlet

from streamduel.config import Config
from streamduel.errors import StreamduelError
from streamduel.stream.runner import Runner
from streamduel.testing.broker import Crash
from streamduel.testing.simulation.cluster import Cluster
from streamduel.testing.simulation.instance import SimulatedOutlet, SimulatedSource
from streamduel.testing.simulation.network import Unreachable

if TYPE_CHECKING:
    from streamduel.testing.simulation.schedule import Schedule

Answer = TypeVar("Answer")


class Process:
    """One process of the service, whose threads give way to others at every call of a connector.

    Args:
        schedule: decides whose turn it is.
        name: of its group membership and its producer; a later process may have the same name.
        config: the configuration.

    Attributes:
        config: the configuration.
        threads: those that are not finished, the runner's and one for each load of a snapshot; each
            with the time before which it sleeps.
        stopping: a stop signal was received.
        paused_until: it does nothing before this time.
        cut_until: it has no connection before this time.
        loses: what happens to the next request: "request", "answer", or "late" for a request that
            is executed after the process has given up waiting for it.
        exited: the error with which it ended.
    """

    def __init__(self, schedule: Schedule, name: str, config: Config) -> None:
        self.name = name
        self.cluster: Cluster = schedule.cluster
        self.threads: dict[greenlet, int] = {}
        self.stopping = False
        self.paused_until = self.cut_until = 0
        self.loses: str | None = None
        self.exited: StreamduelError | None = None
        self._schedule = schedule
        self.config = config
        self._dead = False
        self.start(self._serve)

    @property
    def alive(self) -> bool:
        """Whether the runner runs."""
        return not self._dead

    def start(self, run: Callable[[], None]) -> None:
        """Start a thread."""

        def main() -> None:
            try:
                run()
            except Crash:
                pass
            finally:
                del self.threads[thread]

        thread = greenlet(main, parent=self._schedule.thread)
        self.threads[thread] = 0

    def _serve(self) -> None:
        source = SimulatedSource(self, controlled=self._schedule.workload.controlled)
        try:
            self._run(source, SimulatedOutlet(self, source))
        except StreamduelError as error:
            self.exited = error
        self._dead = True  # its other threads end with it

    def _run(self, source: SimulatedSource, outlet: SimulatedOutlet) -> None:
        runner = Runner(
            self.config,
            source,
            outlet,
            lambda: self.cluster.now / 1000,
            failpoint=self.turn,
            restorer=_Threads(self),
        )
        runner.run(lambda: self.stopping)

    def crash(self) -> None:
        """End it, wherever it is."""
        self._dead = True
        for thread in list(self.threads):
            if thread:  # started
                thread.throw(Crash)
        self.threads.clear()

    def turn(self, step: str, /) -> None:
        """Let the schedule decide who acts next."""
        if self._dead:
            raise Crash
        self._schedule.trace.append((self.cluster.now, self.name, step))
        self._schedule.thread.switch()
        if self._dead:
            raise Crash

    def sleep(self, seconds: float) -> None:
        """Let others act, and do nothing for a time."""
        self.threads[getcurrent()] = self.cluster.now + int(1000 * seconds)
        self.turn("wait")

    def request(self, step: str, request: Callable[[], Answer]) -> Answer:
        """Let the schedule decide who acts next, and then execute a request."""
        self.turn(step)
        if self.cluster.now < self.cut_until:
            raise Unreachable("the connection is cut")
        lost, self.loses = self.loses, None
        if lost == "request":
            raise Unreachable("the request was lost")
        if lost == "late":
            self._schedule.late.append(request)
            raise Unreachable("the request is late")
        answer = request()
        if lost == "answer":
            raise Unreachable("the answer was lost")
        return answer


class _Threads(Executor):
    """Runs loads of snapshots as threads of a process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except StreamduelError as error:
                    future.set_exception(error)

        self._process.start(run)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Threads end with their process."""
