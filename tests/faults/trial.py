"""A run under faults over a live click log, compared with an undisturbed run over the same log."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.fixture import Topics
from tests.faults.figures import Figures
from tests.faults.kafka_runs import PARTITIONS, Run, configure_faults, visible
from tests.faults.processes import inspect, run_service
from tests.faults.services import PACE_SECONDS, Feed, Reader, Service, next_offsets

SETTLE_SECONDS = 600.0
"""The longest that a service may take to the end of the log once all faults are over: a loaded
machine folds thousands of records a second, and the longest log that waits has two million."""


class Servers(NamedTuple):
    """The addresses of the brokers.

    Attributes:
        direct: for the click log, the undisturbed run, and readers.
        service: for the service under faults.
    """

    direct: str
    service: str


class Trial:
    """See `trial`."""

    def __init__(
        self, folder: Path, servers: Servers, topics: Topics, rate: int, burst: float, limit: int
    ) -> None:
        self._folder, self._servers, self._topics = folder, servers, topics
        log = topics(PARTITIONS, retention_ms=-1)
        disturbed = configure_faults(folder / "disturbed", servers.service, log, topics)
        self.run = disturbed._replace(servers=servers.direct)
        self.feed = Feed(servers.direct, log, rate, burst, limit)
        self.reader = Reader(servers.direct, self.run.assignments)
        self.services: list[Service] = []
        self._numbers = itertools.count()
        self._marks: list[tuple[float, float]] = []

    def start(self) -> Service:
        """Start a process of the service."""
        log = self._folder / f"service-{next(self._numbers)}.log"
        service = Service(self.run.config, log)
        self.services.append(service)
        return service

    def mark(self) -> None:
        """Begin to measure until the next visible commit."""
        self._marks.append((time.monotonic(), time.time()))

    def flowing(self, more: int = 20, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until so many more assignments are visible."""
        before = len(self.reader.seen)
        self.wait(lambda: len(self.reader.seen) >= before + more, seconds, "no assignments")

    def joined(self, service: Service) -> None:
        """Wait until a process has folded a partition."""
        self.wait(lambda: service.restored, SETTLE_SECONDS, "no partition was restored")

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until something is so.

        Raises:
            AssertionError: it did not become so in time.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(each.tail() for each in self.services if each.runs)
                raise AssertionError(f"{what} within {seconds:.0f} s\n{logs}")
            time.sleep(0.05)

    def settle(self, seconds: float = SETTLE_SECONDS) -> float:
        """Stop the click log and wait until all of it is committed; the seconds that took."""
        self.feed.stop()
        began = time.monotonic()
        self.wait(self._committed, seconds, "the end of the click log was not committed")
        return time.monotonic() - began

    def _committed(self) -> bool:
        committed, ends = next_offsets(self.run)
        return committed == ends

    def _gaps(self) -> list[float]:
        """The times from each `mark` to the next visible commit of each partition."""
        found = [self.reader.gap(*mark) for mark in self._marks]
        return [gap for gap in found if gap is not None]

    def finish(self, fault: str, faults: int, note: str = "") -> Figures:
        """Let the service reach the end, stop it, and compare with an undisturbed run.

        Raises:
            AssertionError: what is visible differs from the undisturbed run, or an epoch was
                repeated or left out.
        """
        self.settle()
        for service in self.services:
            if service.runs:
                assert service.stop() == 0, service.tail()
        newest = {
            name: each["epoch"] for name, each in inspect(self.run.config)["experiments"].items()
        }
        self.wait(
            lambda: all(self.reader.epochs[name] == epoch for name, epoch in newest.items()),
            SETTLE_SECONDS, "the reader has not seen the last assignment",
        )  # fmt: skip
        log = self.run.log
        undisturbed = configure_faults(
            self._folder / "undisturbed", self._servers.direct, log, self._topics
        )
        assert not run_service(undisturbed.config)
        figures = compare(self.run, undisturbed, fault, faults, self._gaps(), note)
        assert not self.reader.problems, self.reader.problems[:5]
        return figures

    def close(self) -> None:
        """End everything that still runs."""
        self.feed.close()
        self.reader.close()
        for service in self.services:
            service.resume()
            service.kill()


def compare(
    run: Run, undisturbed: Run, fault: str, faults: int, gaps: Sequence[float] = (), note: str = ""
) -> Figures:
    """Figures of a run, which is equal to the undisturbed one, byte for byte.

    Raises:
        AssertionError: it is not equal.
    """
    reports = inspect(run.config), inspect(undisturbed.config)
    found, expected = map(outcomes, reports)
    lost = sum(max(0, expected[key] - found.get(key, 0)) for key in expected)
    doubled = sum(max(0, found[key] - expected.get(key, 0)) for key in found)
    _, ends = next_offsets(run)
    figures = Figures(fault, sum(ends), faults, lost, doubled, [round(g, 2) for g in gaps], note)
    assert visible(run, reports[0]) == visible(undisturbed, reports[1]), figures.line()
    return figures


def outcomes(report: dict[str, Any]) -> dict[tuple[str, str], int]:
    """How many records had which outcome, by experiment, in an `inspect`."""
    return {
        (name, outcome): number
        for name, each in report["experiments"].items()
        for outcome, number in each["tallies"].items()
    }


@contextmanager
def trial(
    folder: Path, servers: Servers, topics: Topics, *,
    rate: int = 3000, burst: float = PACE_SECONDS, limit: int = 2**62,
) -> Iterator[Trial]:  # fmt: skip
    """A live click log, an undisturbed and a disturbed configuration, and a reader."""
    made = Trial(folder, servers, topics, rate, burst, limit)
    try:
        yield made
    finally:
        made.close()
