"""State of the join of impressions and clicks: what waits for more records, and until when."""

from __future__ import annotations

from typing import Final, NamedTuple

import mmh3
import msgspec

from streamduel.records import Impression, RankClick, Side

DOC_BYTES: Final = 5
"""Bytes kept of a document's hash, per rank. With ten ranks, a click on a document that was not
shown is mistaken for one that was once in 10^11 times; and the ids themselves take far more."""

IMPRESSION_BYTES: Final = 300
"""Bytes of an open impression without ranks, in memory; a rank has up to 8 bytes in `teams`,
`DOC_BYTES` in `docs` and 32 in `chances`."""

CLICK_BYTES: Final = 300
"""Bytes of a pending click without its record's text, in memory."""

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
        capped: whether it exceeds the cap of its client, and becomes no duel.
        since: bytes of all impressions and clicks of the partition before it.
        segments: the numbers of its segments.
    """

    a: str
    b: str
    teams: Teams
    docs: bytes | None
    chances: tuple[float | None, ...] | None
    opened_at: int
    offset: int
    clicks: tuple[RankClick, ...] = ()
    capped: bool = False
    since: int = 0
    segments: tuple[int, ...] = ()


class PendingClick(msgspec.Struct, gc=False):
    """A click that arrived before its impression, with its record.

    A million of them, in records of 200 bytes, take about 600 MB with the dedupe window: of the
    record, only its text and the fields for the credit are kept.

    Attributes:
        impression: key of the impression; None once it has arrived, or if displaced.
        rank: as sent, like `doc`, `action` and `ts`.
        doc: a document.
        action: a kind of click.
        ts: event time.
        arrived_at: stream time of arrival.
        offset: the record's.
        key: the record's key, cut to the length that a dead letter repeats.
        value: the record's, for the dead letter if the click does not fit its impression.
        since: bytes of all impressions and clicks of the partition before it.
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
    since: int

    @property
    def timestamp(self) -> None:
        """None: it is not kept, because no dead letter contains it."""


class Cutoff(NamedTuple):
    """Which join windows are over.

    Attributes:
        before: what arrived before this stream time is over.
        oldest: what has this offset, or an earlier one, is over.
        floor: what has fewer bytes before it is over.
    """

    before: int = 0
    oldest: int = -1
    floor: int = 0

    def keeps(self, at: int, offset: int, since: int) -> bool:
        """Whether an impression or a click that arrived at `at` is still open."""
        return at >= self.before and offset > self.oldest and since >= self.floor


def memory_of(event: Impression) -> int:
    """The memory of an open impression, in bytes."""
    per_rank = 8 + (0 if event.docs is None else DOC_BYTES) + (0 if event.chances is None else 32)
    return IMPRESSION_BYTES + per_rank * len(event.teams)


def digest(doc: str) -> bytes:
    """The bytes that are kept of a document's id."""
    return mmh3.hash_bytes(doc)[:DOC_BYTES]


def rank_of(doc: bytes, docs: bytes) -> int | None:
    """The first rank of a document, by its digest and those of all ranks; None if it has none."""
    place = -1
    while (place := docs.find(doc, place + 1)) >= 0:
        if place % DOC_BYTES == 0:
            return place // DOC_BYTES
    return None
