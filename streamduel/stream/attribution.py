"""Attribution: joins impressions with their clicks, each being a record of its own."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from streamduel.connector import LogRecord
from streamduel.records import Click, Impression, RankClick, Rejected, Segment
from streamduel.stream.dead_letters import MAX_KEY_BYTES
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.join_state import (
    CLICK_BYTES,
    Cutoff,
    OpenImpression,
    PendingClick,
    digest,
    memory_of,
    rank_of,
)
from streamduel.stream.open_memory import OpenMemory
from streamduel.stream.tallies import OutOfOrder
from streamduel.stream.team_patterns import TeamPatterns
from streamduel.stream.timers import NEVER

MAX_CLICKS: Final = 1000
"""The most clicks on one impression: people make a handful, so more come from a robot.

As many wait for an impression that has not arrived, the newest: then what waits is determined by
the end of the click log alone, from which a restart rebuilds it.
"""


class Closed(NamedTuple):
    """What closed when a record arrived, when stream time advanced, or when it was evicted.

    Attributes:
        impressions: those whose join window closed, the oldest first.
        unjoined: clicks whose impression did not arrive in time.
    """

    impressions: list[OpenImpression]
    unjoined: int


class Attribution:
    """The open impressions and the pending clicks of one experiment.

    The join window of an impression is open for `window_ms` of stream time; a click that arrives
    before its impression is pending as long. Both end earlier if the partition has had as many
    records since as may fill the dedupe window: it may then have forgotten the impression's id, and
    only an impression that it remembers is open. So the dedupe window decides
    for every click whether its impression is open, closed or has not arrived, and the last stretch
    of the click log rebuilds all that is open.

    Args:
        window_ms: length of the join window, in stream time.
        window: the partition's dedupe window.
        name: of the experiment.
        memory: of the partition; both also end when it evicts them.
        patterns: of the partition.
        segments_of: the numbers of the segments that an impression belongs to.
    """

    __slots__ = (
        "_dedupe",
        "_first",
        "_further",
        "_key",
        "_memory",
        "_name",
        "_names",
        "_open",
        "_order",
        "_patterns",
        "_pending",
        "_pending_since",
        "_segments_of",
        "out_of_order",
        "pending",
        "window_ms",
    )  # fmt: skip

    def __init__(
        self,
        window_ms: int,
        window: DedupeWindow,
        name: str,
        memory: OpenMemory,
        patterns: TeamPatterns,
        segments_of: Callable[[Segment | None], tuple[int, ...]],
    ) -> None:
        self.window_ms = window_ms
        self._name = name
        self._memory = memory
        self._patterns = patterns
        self._segments_of = segments_of
        self._dedupe = window
        self._key: bytes | None = None  # the last record's: most have the same
        self.out_of_order = OutOfOrder()
        self._names: dict[str, str] = {}  # as many as there have been arms
        self.clear()

    def clear(self) -> None:
        """Forget what is open and what is pending, without counting it."""
        self._open: dict[int, OpenImpression] = {}
        self._order: deque[int] = deque()  # the keys of `_open`, the oldest first
        self._pending: deque[PendingClick] = deque()  # the oldest first; some joined or displaced
        # By impression, the oldest pending click, and those after it, the oldest first: most
        # impressions have one, and a deque takes as much memory as all the rest of it.
        self._first: dict[int, PendingClick] = {}
        self._further: dict[int, deque[PendingClick]] = {}
        self.pending = 0
        # Impressions that had a pending click, the oldest first: their offset and the click's,
        # without those that a later impression's earlier click makes irrelevant.
        self._pending_since: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        """The number of open impressions."""
        return len(self._open)

    def open(
        self, key: int, event: Impression, offset: int, now: int, *, capped: bool
    ) -> list[tuple[LogRecord, Rejected | None]]:
        """Open the join window of an impression.

        Call `close` with the same offset and time first, here as for `click`.

        Args:
            key: of its id, in the dedupe window.
            event: the impression.
            offset: the record's.
            now: stream time.
            capped: whether the impression exceeds the cap of its client.

        Returns:
            The clicks that were pending for it, each with the verdict if it does not fit.
        """
        since = self._memory.take(memory_of(event))
        self._watch(since)
        impression = OpenImpression(
            self._names.setdefault(event.a, event.a),
            self._names.setdefault(event.b, event.b),
            self._patterns.of(event.teams)[0],
            None if event.docs is None else b"".join(map(digest, event.docs)),
            None if event.chances is None else tuple(event.chances),
            now,
            offset,
            capped=capped,
            since=since,
            segments=self._segments_of(event.segment),
        )
        self.out_of_order.impressions += self._behind(event, now)
        self._open[key] = impression
        self._order.append(key)
        return [(click, _add(impression, click, event.id)) for click in self._join(key, offset)]

    def _join(self, key: int, offset: int) -> list[PendingClick]:
        """Take the pending clicks of an impression that arrived, the earliest first."""
        first = self._first.pop(key, None)
        if first is None:
            return []
        clicks = [first, *self._further.pop(key, ())]
        for click in clicks:
            click.impression = None
        self.pending -= len(clicks)
        self._drop_joined()
        while self._pending_since and self._pending_since[-1][1] >= first.offset:
            self._pending_since.pop()
        self._pending_since.append((offset, first.offset))
        return clicks

    def _drop_joined(self) -> None:
        while self._pending and self._pending[0].impression is None:
            self._pending.popleft()

    def click(
        self, key: int, event: Click, record: LogRecord, now: int
    ) -> Literal["joined", "late", "pending", "displacing"]:
        """Join a click with its impression, or keep it until the impression arrives.

        A displacing click is pending, too; the oldest that waited for its impression no longer is.

        Args:
            key: of the impression's id.
            event: the click.
            record: the click's record.
            now: stream time.

        Raises:
            Rejected: it does not fit its impression.
        """
        self.out_of_order.clicks += 1
        text = record.value
        since = self._memory.take(CLICK_BYTES + (len(text) if isinstance(text, bytes) else 0))
        impression = self._open.get(key)
        if impression is not None:
            if verdict := _add(impression, event, event.impression):
                raise verdict
            return "joined"
        self.out_of_order.late += self._behind(event, now)
        if key in self._dedupe:
            return "late"
        displaces = self._displace(key)
        self._keep(key, event, record, now, since)
        return "displacing" if displaces else "pending"

    def _watch(self, since: int) -> None:
        """Note that an impression or a click opens with this many bytes before it."""
        if not self._order and not self._pending:
            self._memory.watch(self._name, since)

    def _behind(self, event: Impression | Click, now: int) -> bool:
        """Whether an event happened so long before stream time that its window is over."""
        return event.ts is not None and event.ts < now - self.window_ms

    def _keep(self, key: int, event: Click, record: LogRecord, now: int, since: int) -> None:
        assert not isinstance(record.value, Rejected), "a click was decoded from it"
        self._watch(since)
        if record.key != self._key:
            self._key = None if record.key is None else record.key[:MAX_KEY_BYTES]
        click = PendingClick(
            key,
            event.rank,
            event.doc,
            sys.intern(event.action),  # a few different ones, of which each click has a copy
            event.ts,
            now,
            record.offset,
            self._key,
            record.value,
            since,
        )
        self._pending.append(click)
        if key in self._first:
            self._further.setdefault(key, deque()).append(click)
        else:
            self._first[key] = click
        self.pending += 1

    def _displace(self, key: int) -> bool:
        """Drop the oldest pending click of an impression if one more would be too many."""
        further = self._further.get(key)
        if further is None or len(further) < MAX_CLICKS - 1:
            return False
        oldest, self._first[key] = self._first[key], further.popleft()
        oldest.impression = oldest.key = oldest.value = None  # it remains in `_pending` for a while
        self.pending -= 1
        self._drop_joined()
        return True

    def close(self, offset: int, now: int) -> Closed:
        """Close the windows that are over when the record at an offset arrives, or by stream time.

        Args:
            offset: the record's; 0 to close only windows that are over by stream time.
            now: stream time.
        """
        cutoff = Cutoff(now - self.window_ms, offset - self._dedupe.offsets)
        return Closed(self._close_windows(cutoff), len(self._expire_clicks(cutoff)))

    def evict(self) -> Closed:
        """Close the windows for which the partition has no memory left."""
        memory = self._memory
        cutoff = Cutoff(floor=memory.floor)
        impressions, clicks = self._close_windows(cutoff), self._expire_clicks(cutoff)
        for last in (impressions[-1:], clicks[-1:]):
            memory.evicted = max([memory.evicted, *(it.offset for it in last)])
        return Closed(impressions, len(clicks))

    def reclose(self, offset: int, now: int, *, at_end: bool = False) -> None:
        """Like `close`, while a restart re-reads the click log.

        The snapshot contains what was evicted. A pending click that was evicted later could still
        be joined, so it ends by its memory, and by the snapshot only when everything has been
        re-read.
        """
        evicted = self._memory.evicted
        before, oldest = now - self.window_ms, offset - self._dedupe.offsets
        self._close_windows(Cutoff(before, max(oldest, evicted)))
        floor = self._memory.floor if offset else 0
        self._expire_clicks(Cutoff(before, max(oldest, evicted) if at_end else oldest, floor))

    def _close_windows(self, cutoff: Cutoff) -> list[OpenImpression]:
        closed = []
        while self._order:
            impression = self._open[self._order[0]]
            if cutoff.keeps(impression.opened_at, impression.offset, impression.since):
                break
            del self._open[self._order.popleft()]
            if self._pending_since and self._pending_since[0][0] == impression.offset:
                self._pending_since.popleft()
            closed.append(impression)
        return closed

    def _expire_clicks(self, cutoff: Cutoff) -> list[PendingClick]:
        expired = []
        while self._pending:
            click = self._pending[0]
            if cutoff.keeps(click.arrived_at, click.offset, click.since):
                break
            assert click.impression is not None, "joined clicks are dropped"
            further = self._further.get(click.impression)
            if further is None:
                del self._first[click.impression]
            else:
                self._first[click.impression] = further.popleft()
                if not further:
                    del self._further[click.impression]
            expired.append(self._pending.popleft())
            self._drop_joined()
        self.pending -= len(expired)
        self.out_of_order.expired += len(expired)
        return expired

    def retime(self, since: int, now: int) -> None:
        """Date what is open at `now` if it is dated later, or its record is at or after `since`."""
        for key in reversed(self._order):
            impression = self._open[key]
            if impression.offset < since and impression.opened_at <= now:
                break
            impression.opened_at = now
        for click in reversed(self._pending):
            if click.offset < since and click.arrived_at <= now:
                break
            click.arrived_at = now

    @property
    def memory_since(self) -> int | None:
        """The bytes before the oldest that is open; None if nothing is."""
        parts = [self._open[self._order[0]].since] if self._order else []
        parts += [self._pending[0].since] if self._pending else []
        return min(parts, default=None)

    @property
    def timer(self) -> int:
        """The first stream time at which a join window is over."""
        oldest = [self._open[self._order[0]].opened_at] if self._order else []
        if self._pending:
            oldest.append(self._pending[0].arrived_at)
        return min(oldest) + self.window_ms + 1 if oldest else NEVER

    @property
    def oldest(self) -> int | None:
        """The offset of the oldest open impression; None if none is open."""
        return self._open[self._order[0]].offset if self._order else None

    @property
    def open_since(self) -> int | None:
        """The first offset of the records that rebuild what is open; None if nothing is."""
        needed = [] if self.oldest is None else [self.oldest]
        needed += [since for _, since in list(self._pending_since)[:1]]
        if self._pending:
            needed.append(self._pending[0].offset)
        return min(needed, default=None)


def _add(shown: OpenImpression, click: Click | PendingClick, impression: str) -> Rejected | None:
    """Add a click to an impression, or return why it does not fit."""
    rank: Any = click.rank
    if rank is None:
        doc, of = click.doc or "", _of(impression)
        if shown.docs is None:
            return _misfit(f"names the document '{_cut(doc)}', but {of} has no docs")
        rank = rank_of(digest(doc), shown.docs)
        if rank is None:
            return _misfit(f"names the document '{_cut(doc)}', which {of} does not have")
    if rank >= len(shown.teams):
        ranks = len(shown.teams)
        return _misfit(f"has rank {rank}, but {_of(impression)} has {ranks} ranks, from 0")
    if len(shown.clicks) >= MAX_CLICKS:
        return _misfit(f"is one too many: {_of(impression)} already has {MAX_CLICKS}")
    shown.clicks += (RankClick(rank, click.ts, click.action),)
    return None


def _misfit(what: str) -> Rejected:
    return Rejected("invalid_record", f"the click {what}.")


def _of(impression: str) -> str:
    return f"impression '{_cut(impression)}'"


def _cut(text: str) -> str:
    return text[:80]
