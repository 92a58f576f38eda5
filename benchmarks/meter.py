"""A service with timers: records, elapsed and processor time, and the time of its parts."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamduel.config import load
from streamduel.connector import Poll
from streamduel.service import serve
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask
from streamduel_kafka.source import KafkaSource


@dataclass
class Run:
    """One run of a service or a reader, from its first batch of records to its end.

    The clocks start when the first batch is delivered, so its records are not among `records`.

    Attributes:
        records: delivered after the first batch.
        seconds: until the last commit is visible; for a reader, until the last batch is delivered.
        cpu: seconds of processor time in the same span, all threads.
        poll: seconds within the source's `poll`.
        fold: seconds within the tasks' `fold`.
        commits: seconds of each commit.
    """

    records: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    poll: float = 0.0
    fold: float = 0.0
    commits: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def cpu_microseconds(self) -> float:
        """Processor time per record."""
        return self.cpu / self.records * 1e6


class Meter(Observer):
    """Updates a `Run`."""

    def __init__(self) -> None:
        self.run = Run()
        self._began: float | None = None
        self._cpu = 0.0

    def delivered(self, records: int, seconds: float) -> None:
        """Add a poll and its records."""
        if self._began is not None:
            self.run.records += records
            self.run.poll += seconds
        elif records:
            self._began, self._cpu = time.monotonic(), time.process_time()

    def stop(self) -> None:
        """Include everything up to now."""
        if self._began is not None:
            self.run.seconds = time.monotonic() - self._began
            self.run.cpu = time.process_time() - self._cpu

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Add a commit."""
        if self._began is not None:
            self.run.commits.append(seconds)
            self.stop()


def serve_metered(path: Path, stop: Callable[[], bool], *, until_end: bool) -> Run:
    """Run the service in this process, which must do nothing else before or after."""
    meter = Meter()
    _time_polls(meter)
    _time_folds(meter.run)
    serve(load(path, {}), stop, until_end=until_end, observers=[meter])
    return meter.run


def serve_to_end(path: Path) -> Run:
    """Fold a backlog."""
    return serve_metered(path, lambda: False, until_end=True)


def _time_polls(meter: Meter) -> None:
    poll = KafkaSource.poll

    @functools.wraps(poll)
    def timed(self: KafkaSource, timeout: float, *, hold: bool = False) -> Poll:
        began = time.monotonic()
        brought = poll(self, timeout, hold=hold)
        records = sum(map(len, brought.records.values()))
        meter.delivered(records, time.monotonic() - began)
        return brought

    setattr(KafkaSource, "poll", timed)  # noqa: B010 - measured, not changed


def _time_folds(run: Run) -> None:
    fold = PartitionTask.fold

    @functools.wraps(fold)
    def timed(self: PartitionTask, records: Sequence[Any]) -> None:
        began = time.monotonic()
        fold(self, records)
        run.fold += time.monotonic() - began

    setattr(PartitionTask, "fold", timed)  # noqa: B010 - measured, not changed
