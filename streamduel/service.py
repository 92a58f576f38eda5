"""The service: connectors, runner and observers put together from a configuration."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final

import structlog

from streamduel.config import LoadedConfig
from streamduel.connector import Failpoint, no_failpoint
from streamduel.stream.observer import Observer
from streamduel.stream.runner import Runner

log = structlog.stdlib.get_logger(__name__)

SHUTDOWN_SECONDS: Final = 8.0
"""After a stop signal the last commit may take this long; orchestrators often kill after 10."""

LAST_WORD_SECONDS: Final = 1.0
"""So long the line about it may take. Where nobody reads standard error, its writing waits for
ever, and the end must not."""

GC_THRESHOLDS: Final = (100_000, 50, 50)
"""A poll makes some thousand short-lived objects without cycles: the collector's default of
700 would look through them several times each poll and find nothing."""


class StopSignal:
    """Turns SIGTERM and SIGINT into a flag that the runner asks between two polls.

    A signal during a commit to a broker that is away must not hang: after `SHUTDOWN_SECONDS`
    the process ends anyway, with status 1. Nothing is lost by that: what was not committed is
    folded again at the next start.

    Attributes:
        stopped: whether a signal has come.
        signal: its name; None before.
    """

    def __init__(self) -> None:
        self.stopped = False
        self.signal: str | None = None

    def listen(self, *others: signal.Signals) -> None:
        """Install the handlers, for other signals, too; only the main thread may.

        Another one that is ignored stays so, such as SIGHUP under nohup.
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
        watchdog = threading.Timer(SHUTDOWN_SECONDS, _give_up)
        watchdog.daemon = True
        watchdog.start()

    def __call__(self) -> bool:
        """Whether a signal has come."""
        return self.stopped


def _give_up() -> None:
    silent = threading.Timer(LAST_WORD_SECONDS, os._exit, [1])
    silent.daemon = True
    silent.start()
    log.error(
        "stop overdue", seconds=SHUTDOWN_SECONDS,
        advice="ended at once; what was not committed will be folded again at the next start",
    )  # fmt: skip
    os._exit(1)


def serve(
    loaded: LoadedConfig,
    stop: Callable[[], bool],
    *,
    until_end: bool = False,
    observers: Sequence[Observer] = (),
    failpoint: Failpoint = no_failpoint,
) -> None:
    """Run the service until `stop()` says so, or until the log's present end.

    Args:
        loaded: a checked configuration.
        stop: asked between two polls.
        until_end: stop with a last snapshot when the log's present end is reached.
        observers: are told what happens.
        failpoint: called between the steps of each commit.

    Raises:
        StreamduelError: what waiting will not mend; the last commit stays in force.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    source = loaded.source_connector.open_source(loaded.source, until_end)
    try:
        outlet = loaded.outlet_connector.open_outlet(
            loaded.sink, loaded.snapshots, source, failpoint
        )
        try:
            runner = Runner(loaded.config, source, outlet, time.monotonic, observers, failpoint)
            runner.run(stop, until_end=until_end)
        finally:
            outlet.sink.close()
            outlet.snapshots.close()
    finally:
        source.close()
