"""Attribution: which clicks belong to which impression, each being a record of its own."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Container, Iterator
from typing import Any, Final, Literal

import mmh3
import msgspec

from streamduel.connector import LogRecord
from streamduel.records import Click, Impression, RankClick, Rejected, Side
from streamduel.stream.batch_clock import NEVER
from streamduel.stream.dead_letter import MAX_KEY_BYTES

MOST_CLICKS: Final = 1000
"""On one impression: people make a handful, what makes more is a robot."""

MOST_PATTERNS: Final = 4096
"""Patterns of teams that are kept once for all impressions; ten ranks of two teams have 1024."""

DOC_BYTES: Final = 5
"""Of a document's hash, per rank: enough that a click on a document which was not shown is taken
for one of ten that were once in a hundred thousand million, and small beside the ids themselves."""

Teams = tuple[Side | None, ...]
Fate = Literal["joined", "late", "waits"]


class Shown(msgspec.Struct, gc=False):
    """An impression whose window is open: more clicks may come.

    A million of them take about 270 MB, and 80 MB more if they name ten documents each: nothing of
    it is tracked by the garbage collector, and what many have in common is kept once.

    Attributes:
        a: an arm.
        b: the other one.
        teams: per rank, whose document stood there.
        docs: per rank, `DOC_BYTES` of the document's hash, if clicks may name documents.
        chances: per rank, how likely the document was to come from side a, if that was logged.
        opened_at: stream time when it came.
        offset: of its record.
        clicks: in the order in which they came.
    """

    a: str
    b: str
    teams: Teams
    docs: bytes | None
    chances: tuple[float | None, ...] | None
    opened_at: int
    offset: int
    clicks: tuple[RankClick, ...] = ()


class Early(msgspec.Struct, gc=False):
    """A click whose impression has not come yet, and the record that it came in.

    A million of them, in records of 200 bytes, take about 600 MB with the dedupe window: what the
    record's text says is kept once, as that text, but for what a click is credited by.

    Attributes:
        impression: the impression's key; None once it has come.
        rank: as it was sent, like `doc`, `action` and `ts`.
        doc: a document.
        action: what was done.
        ts: when.
        arrived_at: stream time when it came.
        offset: of the record.
        key: the record's, as far as a dead letter repeats it.
        value: the record's text, for the dead letter if the click does not fit its impression.
    """

    impression: int | None
    rank: int | None
    doc: str | None
    action: str
    ts: int | None
    arrived_at: int
    offset: int
    key: bytes | None
    value: bytes | None

    @property
    def timestamp(self) -> None:
        """The record's own is not kept: no dead letter has it."""


class Attribution:
    """The open impressions of one experiment, and the clicks that wait for theirs.

    An impression is open for `window_ms` of stream time; a click that comes before it waits as
    long. Both end earlier if `most_records` records of the partition have come since: then the
    dedupe window may have forgotten the impression's id, and only what it remembers is open. Why
    that matters: a click finds its impression open, or knows from the dedupe window that it is
    late, or waits. So what waits can be found out again from the log's last stretch, exactly.

    Args:
        window_ms: in stream time.
        most_records: how many ids the dedupe window remembers.
    """

    __slots__ = (
        "_early", "_early_since", "_first", "_further", "_key", "_most_records", "_names", "_open",
        "_order", "_patterns", "_window_ms", "waiting",
    )  # fmt: skip

    def __init__(self, window_ms: int, most_records: int) -> None:
        self._window_ms = window_ms
        self._most_records = most_records
        self._open: dict[int, Shown] = {}
        self._order: deque[int] = deque()  # the keys of `_open`, the oldest first
        self._early: deque[Early] = deque()  # the oldest first; some may have been joined
        # By impression, the oldest click that waits for it, and those after it, the oldest first:
        # most have one click, and a deque takes as much memory as all the rest of it.
        self._first: dict[int, Early] = {}
        self._further: dict[int, deque[Early]] = {}
        self._key: bytes | None = None  # the last record's: most have the same
        self.waiting = 0
        # Impressions that began with an early click, the oldest first: their offset and that of the
        # click, without those that a later one's earlier click makes irrelevant.
        self._early_since: deque[tuple[int, int]] = deque()
        self._patterns: dict[Teams, Teams] = {}
        self._names: dict[str, str] = {}  # as many as there have been arms

    def __len__(self) -> int:
        """How many impressions are open."""
        return len(self._open)

    def open(
        self, key: int, event: Impression, offset: int, now: int
    ) -> list[tuple[LogRecord, Rejected | None]]:
        """An impression has come: it is open from now on.

        What is over by now has been ended before, here as in `click`.

        Args:
            key: of its id, in the dedupe window.
            event: as it was sent.
            offset: of its record.
            now: stream time.

        Returns:
            The clicks that have waited for it, each with the verdict if it does not fit.
        """
        teams = tuple(event.teams)
        if len(self._patterns) < MOST_PATTERNS:
            teams = self._patterns.setdefault(teams, teams)
        shown = Shown(
            self._names.setdefault(event.a, event.a),
            self._names.setdefault(event.b, event.b),
            teams,
            None if event.docs is None else b"".join(map(_digest, event.docs)),
            None if event.chances is None else tuple(event.chances),
            now,
            offset,
        )
        self._open[key] = shown
        self._order.append(key)
        return [(early, _add(shown, early, event.id)) for early in self._join(key, shown)]

    def _join(self, key: int, shown: Shown) -> list[Early]:
        """The clicks that wait for an impression which has come, the earliest first."""
        first = self._first.pop(key, None)
        if first is None:
            return []
        there = [first, *self._further.pop(key, ())]
        for early in there:
            early.impression = None
        self.waiting -= len(there)
        self._drop_joined()
        while self._early_since and self._early_since[-1][1] >= first.offset:
            self._early_since.pop()
        self._early_since.append((shown.offset, first.offset))
        return there

    def _drop_joined(self) -> None:
        while self._early and self._early[0].impression is None:
            self._early.popleft()

    def click(
        self, key: int, event: Click, record: LogRecord, now: int, seen: Container[int]
    ) -> Fate:
        """A click has come.

        Args:
            key: of its impression's id.
            event: as it was sent.
            record: of the log.
            now: stream time.
            seen: the keys that the dedupe window remembers.

        Raises:
            Rejected: it does not fit its impression.
        """
        shown = self._open.get(key)
        if shown is not None:
            if verdict := _add(shown, event, event.impression):
                raise verdict
            return "joined"
        if key in seen:
            return "late"
        self._wait(key, event, record, now)
        return "waits"

    def _wait(self, key: int, event: Click, record: LogRecord, now: int) -> None:
        """Keep a click for its impression, and of its record what a dead letter needs."""
        if record.key != self._key:
            self._key = None if record.key is None else record.key[:MAX_KEY_BYTES]
        early = Early(
            key,
            event.rank,
            event.doc,
            sys.intern(event.action),  # a few different ones, of which each click has a copy
            event.ts,
            now,
            record.offset,
            self._key,
            record.value,
        )
        self._early.append(early)
        if key in self._first:
            self._further.setdefault(key, deque()).append(early)
        else:
            self._first[key] = early
        self.waiting += 1

    def close(self, offset: int, now: int) -> Iterator[Shown]:
        """End the windows that are over, with the record at an offset; the oldest first."""
        before, oldest = now - self._window_ms, offset - self._most_records
        while self._order:
            shown = self._open[self._order[0]]
            if shown.opened_at >= before and shown.offset > oldest:
                break
            del self._open[self._order.popleft()]
            if self._early_since and self._early_since[0][0] == shown.offset:
                self._early_since.popleft()
            yield shown

    def give_up(self, offset: int, now: int) -> int:
        """Let clicks wait no longer whose impression has not come in time; how many."""
        before, oldest, given_up = now - self._window_ms, offset - self._most_records, 0
        while self._early:
            early = self._early[0]
            if early.arrived_at >= before and early.offset > oldest:
                break
            assert early.impression is not None, "those that have joined are dropped"
            further = self._further.get(early.impression)
            if further is None:
                del self._first[early.impression]
            else:
                self._first[early.impression] = further.popleft()
                if not further:
                    del self._further[early.impression]
            given_up += 1
            self._early.popleft()
            self._drop_joined()
        self.waiting -= given_up
        return given_up

    @property
    def alarm(self) -> int:
        """The first stream time at which a window is over."""
        oldest = [self._open[self._order[0]].opened_at] if self._order else []
        if self._early:
            oldest.append(self._early[0].arrived_at)
        return min(oldest) + self._window_ms + 1 if oldest else NEVER

    @property
    def since(self) -> int | None:
        """The offset from which on the log says all that is open; None if nothing is."""
        needed = [self._open[self._order[0]].offset] if self._order else []
        needed += [since for _, since in list(self._early_since)[:1]]
        if self._early:
            needed.append(self._early[0].offset)
        return min(needed, default=None)


def _add(shown: Shown, click: Click | Early, impression: str) -> Rejected | None:
    """Give an impression one click more, or say why it cannot have it."""
    rank: Any = click.rank
    if rank is None:
        doc, of = click.doc or "", _of(impression)
        if shown.docs is None:
            return _misfit(f"names the document '{_cut(doc)}', but {of} has no docs")
        rank = _rank_of(doc, shown.docs)
        if rank is None:
            return _misfit(f"names the document '{_cut(doc)}', which {of} has not")
    if rank >= len(shown.teams):
        ranks = len(shown.teams)
        return _misfit(f"has rank {rank}, but {_of(impression)} has {ranks} ranks, from 0")
    if len(shown.clicks) >= MOST_CLICKS:
        return _misfit(f"is one too many: {_of(impression)} has had {MOST_CLICKS}")
    shown.clicks += (RankClick(rank, click.ts, click.action),)
    return None


def _digest(doc: str) -> bytes:
    return mmh3.hash_bytes(doc)[:DOC_BYTES]


def _rank_of(doc: str, docs: bytes) -> int | None:
    wanted = _digest(doc)
    for start in range(0, len(docs), DOC_BYTES):
        if docs.startswith(wanted, start):
            return start // DOC_BYTES
    return None


def _misfit(what: str) -> Rejected:
    return Rejected("invalid_record", f"the click {what}.")


def _of(impression: str) -> str:
    return f"impression '{_cut(impression)}'"


def _cut(text: str) -> str:
    return text[:80]
