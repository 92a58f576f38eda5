"""The service: connectors, runner and observers, put together from a configuration."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from types import FrameType
from typing import Final

import structlog

from streamduel.config import LoadedConfig
from streamduel.connector import Failpoint, SourceOptions, no_failpoint
from streamduel.stream.observer import Observer
from streamduel.stream.runner import Runner
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

SHUTDOWN_SECONDS: Final = 8.0
"""The longest that the last commit may take after a stop signal: orchestrators often send SIGKILL
after 10 s."""

OVERDUE_LOG_SECONDS: Final = 1.0
"""The longest that logging an overdue stop may take: if no process reads standard error, writing to
it blocks."""

GC_SECONDS: Final = 10.0
"""The time between two runs of the collector while brokers are away."""

GC_THRESHOLDS: Final = (100_000, 50, 50)
"""A poll makes thousands of short-lived objects without cycles: the collector's default of 700
would look through them several times per poll and find nothing."""


class StopSignal:
    """Turns SIGTERM and SIGINT into a flag that the runner reads between two polls.

    A commit to a broker that is down must not delay the end: after `SHUTDOWN_SECONDS` the
    process exits with status 1. Nothing is lost: the next start folds again what was not
    committed.

    Attributes:
        stopped: whether a signal was received.
        signal: its name; None before.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.signal: str | None = None

    def listen(self, *others: signal.Signals) -> None:
        """Install the handlers, also for other signals; only the main thread may do this.

        Others that are ignored stay ignored, such as SIGHUP under nohup.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for number in others:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.stopped:
            return
        self.stopped, self.signal = True, signal.Signals(number).name
        watchdog = threading.Timer(SHUTDOWN_SECONDS, _exit_overdue)
        watchdog.daemon = True
        watchdog.start()

    def __call__(self) -> bool:
        """Whether a signal was received."""
        return self.stopped


def _exit_overdue() -> None:
    fallback = threading.Timer(OVERDUE_LOG_SECONDS, os._exit, [1])
    fallback.daemon = True
    fallback.start()
    log.error(
        "stop overdue", seconds=SHUTDOWN_SECONDS,
        advice="exited before the last commit; the next start folds the uncommitted records again",
    )  # fmt: skip
    os._exit(1)


class GarbageCollection(Observer):
    """Frees the state of lost partitions, and connections and clients of Kafka that failed.

    They may be in the traceback of an error, which often refers to itself: a future keeps the error
    that it raises. Without this, they stay until the collector looks at old objects, nearly never.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock()
        self._restoring: set[int] = set()

    def gained(self, partitions: Sequence[int]) -> None:
        """Note them: while brokers are away, their snapshots are loaded again and again."""
        self._restoring.update(partitions)

    def restored(self, task: PartitionTask) -> None:
        """Note it."""
        self._restoring.discard(task.partition)

    def lost(self, partitions: Sequence[int]) -> None:
        """Run the collector: 0.3 s with a thousand experiments.

        After a refused commit it runs once more, with the next poll: only then have the calls of
        the commit ended.
        """
        self._restoring.difference_update(partitions)
        if partitions:
            gc.collect()

    def connection(self, *, source: bool) -> None:
        """While brokers are away, run the collector again and again.

        Each failed attempt to connect leaves a socket (kafka-python) or a client with its threads
        (librdkafka) in such a traceback: two to seven a second, until the process has no file left.
        The click log may be reached meanwhile, and the coordinator of transactions not.
        """
        now = self._clock()
        if (self._restoring or not source) and now >= self._next:
            self._next = now + GC_SECONDS
            gc.collect()


def serve(
    loaded: LoadedConfig,
    stop: Callable[[], bool],
    *,
    until_end: bool = False,
    observers: Sequence[Observer] = (),
    failpoint: Failpoint = no_failpoint,
) -> None:
    """Run the service until `stop()` is true, or until the click log's present end.

    Args:
        loaded: a checked configuration.
        stop: called between two polls.
        until_end: stop, with a last snapshot, when the click log's present end is reached.
        observers: are notified of what happens.
        failpoint: called between the steps of each commit.

    Raises:
        StreamduelError: a permanent error; the last commit remains valid.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    options = SourceOptions(until_end, loaded.config.limits.max_batch_bytes)
    with closing(loaded.source_connector.open_source(loaded.source, options)) as source:
        outlet = loaded.outlet_connector.open_outlet(
            loaded.sink, loaded.snapshots, source, failpoint
        )
        with closing(outlet):
            observers = [*observers, GarbageCollection()]
            runner = Runner(loaded.config, source, outlet, time.monotonic, observers, failpoint)
            # What is loaded by now stays until the end. Looking through it takes up to a second on
            # a slow or busy machine, and neither the fold nor a probe goes on meanwhile.
            gc.freeze()
            try:
                runner.run(stop, until_end=until_end)
            finally:
                gc.unfreeze()
