"""Timers: the stream times at which an experiment has something to do, with or without duels."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, Final

from streamduel.config.experiment import ExperimentSettings, FallbackSettings
from streamduel.records import MAX_TIME

NEVER: Final = 2 * MAX_TIME
"""Later than any stream time."""

_MAX_STALE: Final = 4
"""The heap is rebuilt when it has so many times more entries than there are experiments: most of
them are stale then. Setting a timer stays O(log n), amortised."""

_CHECKS: Final = 2
"""Renewal checks per validity period. As long as records come in every half of it, the
assignment is renewed before it expires."""


class Timers:
    """One timer for each experiment; a thousand cost no more to watch than one.

    Attributes:
        next: the earliest stream time; when it is reached, ask `due`.

    >>> timers = Timers()
    >>> timers.set("search", 500)
    >>> timers.set("ads", 300)
    >>> timers.next, timers.due(499), timers.due(500)
    (300, ['ads'], ['ads', 'search'])
    >>> timers.set("ads", 900)
    >>> timers.next
    500
    """

    __slots__ = ("_at", "_heap", "next")

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self.next = NEVER

    def set(self, name: str, at: int) -> None:
        """Set an experiment's timer, replacing the former one."""
        if at == self._at.get(name, NEVER):
            return
        self._at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > _MAX_STALE * len(self._at):
            self._heap = [(at, name) for name, at in self._at.items()]
            heapify(self._heap)
        while self._at[self._heap[0][1]] != self._heap[0][0]:
            heappop(self._heap)
        self.next = self._heap[0][0]

    def due(self, now: int) -> list[str]:
        """The experiments whose timer has expired, sorted by name for equal bytes."""
        found = set()
        places = [0]
        for place in places:  # grows: the children of an entry in the heap are not earlier
            if place < len(self._heap) and self._heap[place][0] <= now:
                at, name = self._heap[place]
                if self._at[name] == at:
                    found.add(name)
                places += (2 * place + 1, 2 * place + 2)
        return sorted(found)


@dataclass(slots=True)
class BatchTimer:
    """When an open batch is published again, and when its deadline passes.

    Stream time is 0 before the first record. A batch that was opened then counts as opened by the
    first record.

    Attributes:
        settings: the experiment's, with the deadline of a batch and the interval between two
            publications of its remaining duels.
        opened_at: stream time; None before the first batch.
        published_at: stream time at which the remaining duels were last checked.
    """

    settings: ExperimentSettings
    opened_at: int | None = None
    published_at: int = 0

    def start(self, now: int) -> None:
        """A batch is opened."""
        self.opened_at = self.published_at = now

    def rewind(self, now: int) -> None:
        """Stream time was set back: later times become this one."""
        self.opened_at = None if self.opened_at is None else min(self.opened_at, now)
        self.published_at = min(self.published_at, now)

    def starts(self, now: int) -> bool:
        """Whether the first batch is opened now, or one opened before all records gets its time."""
        return self.opened_at is None or self.opened_at == 0 < now

    def is_overdue(self, now: int) -> bool:
        """Whether the deadline has passed."""
        return self._deadline <= now

    @property
    def _deadline(self) -> int:
        after = self.settings.batch_deadline_ms
        return NEVER if after is None or not self.opened_at else self.opened_at + after

    @property
    def at(self) -> int:
        """The stream time at which the batch must be checked next."""
        if not self.opened_at:
            return 1
        again = self.published_at + self.settings.batch_republish_ms
        return min(again, self._deadline) if self._deadline > self.published_at else again

    def state(self) -> dict[str, Any]:
        """Arguments that restore the timer."""
        return {"opened_at": self.opened_at, "published_at": self.published_at}


@dataclass(slots=True)
class RenewalTimer:
    """Publishes an experiment's assignment again before it expires, as long as records come.

    Halfway through the validity of an assignment, the timer checks whether there were records. If
    there were, the assignment is renewed. If not, it expires, and the next duel renews it
    immediately.

    Stream time is 0 before the first record of the click log. An assignment published then does
    not expire, because the time is not known yet; the first record renews it.

    Attributes:
        settings: the fallback; without a fallback arm, assignments do not expire.
        published_at: stream time of the last assignment; None before the first.
        records: the number of the experiment's records at that time.
        expires: whether no record had come at the last check.
    """

    settings: FallbackSettings
    published_at: int | None = None
    records: int = 0
    expires: bool = False

    @property
    def at(self) -> int:
        """The stream time of the next check."""
        if self.settings.arm is None or self.published_at is None or self.expires:
            return NEVER
        return self.published_at + self.settings.idle_ms // _CHECKS if self.published_at else 1

    def check(self, records: int) -> bool:
        """Whether to renew the assignment, now that the timer has expired.

        Args:
            records: the number of the experiment's records so far.
        """
        self.expires = bool(self.published_at) and records == self.records
        return not self.expires

    def published(self, now: int, records: int) -> tuple[int | None, str | None]:
        """An assignment is published.

        Returns:
            The end of its validity, and the arm to serve alone from then on.
        """
        if self.settings.arm is None:
            return None, None
        self.published_at, self.records, self.expires = now, records, False
        return (min(now + self.settings.idle_ms, MAX_TIME) if now else None), self.settings.arm

    def state(self) -> dict[str, Any]:
        """Arguments that restore the timer."""
        return {
            "published_at": self.published_at,
            "records": self.records,
            "expires": self.expires,
        }
