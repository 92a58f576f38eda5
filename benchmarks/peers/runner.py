"""One run of a program: records a second, processor time, memory; and the same with a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.peers.clicks import Clicks
from benchmarks.peers.feed import Feed
from benchmarks.peers.ledger import Ledger
from benchmarks.peers.peer import Peer
from benchmarks.peers.processes import Program

START_SECONDS = 120.0
"""Until the first records are counted: an interpreter, a JVM, a rebalance."""

RUN_SECONDS = 300.0
"""Until all are, at 1,000 a second."""


class RunError(Exception):
    """A peer did not do its job; the message says what it did."""


@dataclass(frozen=True)
class Figures:
    """What a run has shown.

    Attributes:
        records: repetitions included.
        seconds: from the moment at which they can be read until the last result is visible.
        cpu: seconds of processor time of all its processes, in the same span.
        peak: of its memory, in bytes.
        mistakes: in its results.
    """

    records: int
    seconds: float
    cpu: float
    peak: int
    mistakes: list[str]


@dataclass(frozen=True)
class Recovery:
    """What a run with a kill has shown.

    Attributes:
        seconds: from the kill until a result with more records is visible; None if the peer did not
            get there, with the reason in `mistakes`.
        repeated: results that were published again.
        mistakes: in its results at the end.
    """

    seconds: float | None
    repeated: int
    mistakes: list[str]


class Results:
    """The results of a peer, entered in a ledger as they become visible."""

    def __init__(self, peer: Peer, feed: Feed) -> None:
        self.ledger = Ledger()
        self._peer = peer
        self._feed = feed

    def look(self) -> bool:
        """Take in what is new; returns whether an experiment got further."""
        further = [self.ledger.add(self._peer.result(value)) for value in self._feed.look()]
        return any(further)

    def catch_up(self) -> None:
        """Take in all that is visible now."""
        while self._feed.has_more():
            self.look()

    def wait(self, program: Program, clicks: Clicks, seconds: float) -> None:
        """Wait until the results for these records are visible."""
        done = self._committed if self._peer.unchanged else self._counted
        self._until(lambda _: done(clicks), program, seconds, "all results")

    def wait_half(self, program: Program, clicks: Clicks) -> None:
        """Wait until half of the records are in the results of every experiment."""
        half = {name: records // 2 for name, records in clicks.expected.records.items()}
        seconds = START_SECONDS + RUN_SECONDS
        self._until(lambda _: self.ledger.has(half), program, seconds, "half of the results")

    def wait_further(self, program: Program, seconds: float) -> None:
        """Wait until a result has more records than all before it."""
        self._until(lambda further: further, program, seconds, "a new result after the kill")

    def _until(
        self, done: Callable[[bool], bool], program: Program, seconds: float, what: str
    ) -> None:
        """Look until something is done, which is told whether the last look got further."""
        deadline = time.monotonic() + seconds
        while not done(self.look()):
            if program.ended:
                raise RunError(f"the program ended before {what}:\n{program.last_lines}")
            if time.monotonic() > deadline:
                raise RunError(
                    f"waited {seconds:.0f} s for {what} without success\n{program.last_lines}"
                )

    def _counted(self, clicks: Clicks) -> bool:
        return self.ledger.has(clicks.expected.records)

    def _committed(self, clicks: Clicks) -> bool:
        offsets = self._feed.committed()
        return all(offsets.get(number, 0) >= end for number, end in enumerate(clicks.ends))


def measure(
    program: Program, results: Results, release: Callable[[], None], warm: Clicks, main: Clicks
) -> Figures:
    """Measure a program that was started, from the release of its records on.

    Args:
        program: the peer's.
        results: its results.
        release: makes the main records readable.
        warm: the records that it can read already.
        main: the others.
    """
    results.wait(program, warm, START_SECONDS)
    cpu, began = program.cpu_seconds(), time.monotonic()
    release()
    results.wait(program, main, RUN_SECONDS)
    seconds = time.monotonic() - began
    cpu = program.cpu_seconds() - cpu
    mistakes = results.ledger.mistakes(main.expected.wins)
    return Figures(main.count, seconds, cpu, program.peak_bytes(), mistakes)


def recover(start: Callable[[], Program], results: Results, main: Clicks) -> Recovery:
    """Start a program whose records can be read, kill it half way, and start it again."""
    seconds = None
    with ExitStack() as stack:
        first = stack.enter_context(start())
        results.wait_half(first, main)
        first.kill()
        began = time.monotonic()
        second = stack.enter_context(start())
        results.catch_up()
        try:
            results.wait_further(second, START_SECONDS)
            seconds = time.monotonic() - began
            results.wait(second, main, RUN_SECONDS)
        except RunError as error:
            return Recovery(seconds, results.ledger.repeated, [str(error)])
    mistakes = results.ledger.mistakes(main.expected.wins)
    return Recovery(seconds, results.ledger.repeated, mistakes)
