"""Attribution: joins impressions with their clicks, each being a record of its own."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any, Final, Literal, NamedTuple

import mmh3
import msgspec

from streamduel.connector import LogRecord
from streamduel.records import Click, Impression, RankClick, Rejected, Side
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.outputs import MAX_KEY_BYTES
from streamduel.stream.timers import NEVER

MAX_CLICKS: Final = 1000
"""On one impression: people make a handful, so more come from a robot."""

MAX_PATTERNS: Final = 4096
"""Patterns of teams that impressions share in memory; ten ranks of two teams have 1024."""

DOC_BYTES: Final = 5
"""Bytes kept of a document's hash, per rank. With ten ranks, a click on a document that was not
shown is mistaken for one that was once in 10^11 times; and the ids themselves take far more."""

Teams = tuple[Side | None, ...]


class OpenImpression(msgspec.Struct, gc=False):
    """An impression whose join window is open: more clicks may come.

    A million of them take about 270 MB, and 80 MB more if they name ten documents each: the garbage
    collector tracks none of it, and they share what many have in common.

    Attributes:
        a: an arm.
        b: the other arm.
        teams: per rank, the side whose document was shown.
        docs: per rank, `DOC_BYTES` of the document's hash, if clicks may name documents.
        chances: per rank, the probability that the document came from side a, if logged.
        opened_at: stream time of arrival.
        offset: the record's.
        clicks: in order of arrival.
    """

    a: str
    b: str
    teams: Teams
    docs: bytes | None
    chances: tuple[float | None, ...] | None
    opened_at: int
    offset: int
    clicks: tuple[RankClick, ...] = ()


class PendingClick(msgspec.Struct, gc=False):
    """A click that arrived before its impression, with its record.

    A million of them, in records of 200 bytes, take about 600 MB with the dedupe window: of the
    record, only its text and what a click is credited by are kept.

    Attributes:
        impression: key of the impression; None once it has arrived.
        rank: as sent, like `doc`, `action` and `ts`.
        doc: a document.
        action: a kind of click.
        ts: event time.
        arrived_at: stream time of arrival.
        offset: the record's.
        key: the record's key, cut to the length that a dead letter repeats.
        value: the record's, for the dead letter if the click does not fit its impression.
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
        """Not kept: no dead letter contains it."""


class Closed(NamedTuple):
    """What closed when a record arrived or stream time advanced.

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
    records since as the dedupe window holds: the dedupe window may then have forgotten the
    impression's id, and only an impression that it remembers is open. So the dedupe window tells
    for every click whether its impression is open, late or still to come, and what is open can be
    rebuilt exactly from the last stretch of the click log.

    Args:
        window_ms: length of the join window, in stream time.
        window: the partition's dedupe window.
    """

    __slots__ = (
        "_dedupe", "_first", "_further", "_key", "_names", "_open", "_order", "_patterns",
        "_pending", "_pending_since", "_window_ms", "pending",
    )  # fmt: skip

    def __init__(self, window_ms: int, window: DedupeWindow) -> None:
        self._window_ms = window_ms
        self._dedupe = window
        self._open: dict[int, OpenImpression] = {}
        self._order: deque[int] = deque()  # the keys of `_open`, the oldest first
        self._pending: deque[PendingClick] = deque()  # the oldest first; some may be joined
        # By impression, the oldest pending click, and those after it, the oldest first: most
        # impressions have one, and a deque takes as much memory as all the rest of it.
        self._first: dict[int, PendingClick] = {}
        self._further: dict[int, deque[PendingClick]] = {}
        self._key: bytes | None = None  # the last record's: most have the same
        self.pending = 0
        # Impressions that had a pending click, the oldest first: their offset and the click's,
        # without those that a later impression's earlier click makes irrelevant.
        self._pending_since: deque[tuple[int, int]] = deque()
        self._patterns: dict[Teams, Teams] = {}
        self._names: dict[str, str] = {}  # as many as there have been arms

    def __len__(self) -> int:
        """The number of open impressions."""
        return len(self._open)

    def open(
        self, key: int, event: Impression, offset: int, now: int
    ) -> list[tuple[LogRecord, Rejected | None]]:
        """Open the join window of an impression.

        Call `close` with the same offset and time first, here as for `click`.

        Args:
            key: of its id, in the dedupe window.
            event: the impression.
            offset: the record's.
            now: stream time.

        Returns:
            The clicks that were pending for it, each with the verdict if it does not fit.
        """
        teams = tuple(event.teams)
        if len(self._patterns) < MAX_PATTERNS:
            teams = self._patterns.setdefault(teams, teams)
        impression = OpenImpression(
            self._names.setdefault(event.a, event.a),
            self._names.setdefault(event.b, event.b),
            teams,
            None if event.docs is None else b"".join(map(_digest, event.docs)),
            None if event.chances is None else tuple(event.chances),
            now,
            offset,
        )
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
    ) -> Literal["joined", "late", "pending"]:
        """Join a click with its impression, or keep it until the impression arrives.

        Args:
            key: of the impression's id.
            event: the click.
            record: the click's record.
            now: stream time.

        Raises:
            Rejected: it does not fit its impression.
        """
        impression = self._open.get(key)
        if impression is not None:
            if verdict := _add(impression, event, event.impression):
                raise verdict
            return "joined"
        if key in self._dedupe:
            return "late"
        self._keep(key, event, record, now)
        return "pending"

    def _keep(self, key: int, event: Click, record: LogRecord, now: int) -> None:
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
        )
        self._pending.append(click)
        if key in self._first:
            self._further.setdefault(key, deque()).append(click)
        else:
            self._first[key] = click
        self.pending += 1

    def close(self, offset: int, now: int) -> Closed:
        """End what is over when the record at an offset arrives, and what is over by stream time.

        Args:
            offset: the record's; 0 to end only what is over by stream time.
            now: stream time.
        """
        before, oldest = now - self._window_ms, offset - self._dedupe.max_records
        return Closed(self._close_windows(before, oldest), self._expire_clicks(before, oldest))

    def _close_windows(self, before: int, oldest: int) -> list[OpenImpression]:
        closed = []
        while self._order:
            impression = self._open[self._order[0]]
            if impression.opened_at >= before and impression.offset > oldest:
                break
            del self._open[self._order.popleft()]
            if self._pending_since and self._pending_since[0][0] == impression.offset:
                self._pending_since.popleft()
            closed.append(impression)
        return closed

    def _expire_clicks(self, before: int, oldest: int) -> int:
        expired = 0
        while self._pending:
            click = self._pending[0]
            if click.arrived_at >= before and click.offset > oldest:
                break
            assert click.impression is not None, "joined clicks are dropped"
            further = self._further.get(click.impression)
            if further is None:
                del self._first[click.impression]
            else:
                self._first[click.impression] = further.popleft()
                if not further:
                    del self._further[click.impression]
            expired += 1
            self._pending.popleft()
            self._drop_joined()
        self.pending -= expired
        return expired

    @property
    def timer(self) -> int:
        """The first stream time at which a join window is over."""
        oldest = [self._open[self._order[0]].opened_at] if self._order else []
        if self._pending:
            oldest.append(self._pending[0].arrived_at)
        return min(oldest) + self._window_ms + 1 if oldest else NEVER

    @property
    def open_since(self) -> int | None:
        """The first offset of the records that rebuild what is open; None if nothing is."""
        needed = [self._open[self._order[0]].offset] if self._order else []
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
        rank = _rank_of(doc, shown.docs)
        if rank is None:
            return _misfit(f"names the document '{_cut(doc)}', which {of} does not have")
    if rank >= len(shown.teams):
        ranks = len(shown.teams)
        return _misfit(f"has rank {rank}, but {_of(impression)} has {ranks} ranks, from 0")
    if len(shown.clicks) >= MAX_CLICKS:
        return _misfit(f"is one too many: {_of(impression)} already has {MAX_CLICKS}")
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
