"""Decoding: from raw records to parts of slices, and to messages that are written unchanged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from streamduel.errors import similar
from streamduel.interleaving.credit import Click as CreditClick
from streamduel.record_rules import contradiction, over_limit
from streamduel.records import (
    Click,
    Control,
    Duel,
    Duels,
    Impression,
    InputEvent,
    Interleaving,
    Rejected,
    Segment,
)
from streamduel.stream.dead_letters import MAX_MESSAGE_BYTES, dead_letter
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.join_state import digest
from streamduel_spark.crediting import A_WINS, B_WINS, TIE, Crediting
from streamduel_spark.parts import Clicked, Finished, Forwarded, Group, Output, Shown, Tally
from streamduel_spark.plan import EMPTY, Lane, Plan, key_of, seed_of

MAX_LETTERS: Final = 1000
"""Dead letters that one `Decoder` writes; further ones are only counted, because the driver holds
those of a batch in memory."""

MAX_BYTES: Final = 2**22
"""Bytes of the dead letters of one `Decoder`, and as many of its control records, for the same
reason: a letter may have a megabyte."""

_WINNERS: Final = {"a": A_WINS, "b": B_WINS, "tie": TIE}


class RawRecord(NamedTuple):
    """One record of the raw topic; a `LogRecord` of streamduel."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Place(NamedTuple):
    """Where a part belongs.

    Attributes:
        bucket: the number of the bucket; all records that concern an id are in one bucket.
        lane: the lane.
        start: the beginning of its slice.
    """

    bucket: int
    lane: Lane
    start: int


class Decoder:
    """Decodes records into parts of slices, and into messages that are written unchanged.

    Args:
        plan: the experiments and limits.
        topic: the name of the raw topic, for dead letters.

    Attributes:
        parts: the parts of slices by their place.
        newest: the largest time of the parts at a place.
        letters: dead letters so far.
        counts: records by outcome.
    """

    def __init__(self, plan: Plan, topic: str) -> None:
        self._plan, self._topic = plan, topic
        limits = plan.limits
        self._decode = RecordDecoder(limits.max_record_bytes, None, limits.max_ranks)
        self._crediting = Crediting(plan.experiments)
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._now = 0
        self.parts: dict[Place, list[Finished | Shown | Clicked]] = {}
        self.newest: dict[Place, int] = {}
        self.letters = 0
        self._letter_bytes = self._control_bytes = 0
        self.counts: Counter[str] = Counter()

    def read(self, records: Iterable[RawRecord]) -> Iterator[Output]:
        """Decode records, and yield the messages that are written unchanged."""
        # A clock that is ahead would make all other records late, so a time in the future counts as
        # now.
        self._now = time.time_ns() // 1_000_000
        for record in records:
            try:
                event = self._decode(record.value)
                self._check(event, record)
            except Rejected as verdict:
                yield from self._reject(record, verdict)
                continue
            if isinstance(event, Control):
                yield from self._forward(event, record)
            else:
                self._HANDLERS[type(event)](self, event, record)

    def _reject(self, record: RawRecord, verdict: Rejected) -> Iterator[Forwarded]:
        self.counts["dead letters"] += 1
        if self.letters >= MAX_LETTERS:
            return
        letter = dead_letter(record, verdict, self._topic, record.partition)
        if self._letter_bytes + len(letter.value) > MAX_BYTES:
            return
        self.letters += 1
        self._letter_bytes += len(letter.value)
        place = record.partition, record.offset
        yield Forwarded(place, self._plan.dead_letters, letter.key, letter.value)

    def _forward(self, event: Control, record: RawRecord) -> Iterator[Forwarded]:
        value = record.value or b""
        if self._control_bytes + len(value) > MAX_BYTES:
            self.counts["lost control records"] += 1
            return
        self._control_bytes += len(value)
        self.counts["control records"] += 1
        yield Forwarded((record.partition, record.offset), "", event.experiment.encode(), value)

    def take(self) -> tuple[dict[Place, list[Finished | Shown | Clicked]], dict[Place, int], Tally]:
        """Parts, newest times and counts since the last call."""
        taken = self.parts, self.newest, Tally(dict(self.counts))
        self.parts, self.newest, self.counts = {}, {}, Counter()
        return taken

    def _check(self, event: InputEvent, record: RawRecord) -> None:
        """Check what the types of the fields cannot express.

        Raises:
            Rejected: the record becomes a dead letter.
        """
        if event.experiment not in self._plan.experiments:
            hint = similar(event.experiment, list(self._plan.experiments)) or "."
            raise Rejected(
                "unknown_experiment", f"unknown experiment '{event.experiment[:80]}'{hint}"
            )
        if problem := over_limit(event, self._plan.limits) or contradiction(event):
            raise Rejected("invalid_record", problem)
        size = len(record.value or b"")
        if isinstance(event, Control) and size > MAX_MESSAGE_BYTES:
            raise Rejected(
                "too_large",
                f"the control record has {size} bytes; at most {MAX_MESSAGE_BYTES} can be "
                "forwarded.",
            )

    def _duel(self, event: Duel, record: RawRecord) -> None:
        if event.a == event.b:
            self.counts["served alone"] += 1  # it changes no count, and `duels` cannot hold it
        else:
            self._finished(event, record, _WINNERS[event.winner or "tie"])

    def _interleaving(self, event: Interleaving, record: RawRecord) -> None:
        clicks = [
            CreditClick(it) if isinstance(it, int) else CreditClick(it.rank, it.action, it.ts)
            for it in event.clicks
        ]
        outcome = self._crediting.outcome(
            event.experiment, _teams(event.teams), event.chances, clicks
        )
        self._finished(event, record, outcome)

    def _duels(self, event: Duels, record: RawRecord) -> None:
        self._finished(event, record, TIE, (event.wins_a, event.wins_b, event.ties))

    def _finished(
        self,
        event: Duel | Duels | Interleaving,
        record: RawRecord,
        outcome: int,
        wins: tuple[int, int, int] | None = None,
    ) -> None:
        self.counts["finished"] += 1
        key, ts = key_of(event.id, seed_of(event.experiment)), self._ts(record)
        group = self._group(event)
        part = Finished(key, ts, record.partition, record.offset, group, outcome, wins)
        self._put("duel", event.experiment, key, part)

    def _impression(self, event: Impression, record: RawRecord) -> None:
        self.counts["impressions"] += 1
        key = key_of(event.id, seed_of(event.experiment))
        docs = None if event.docs is None else b"".join(map(digest, event.docs))
        part = Shown(
            key, self._ts(record), record.partition, record.offset, self._group(event),
            _teams(event.teams), docs, event.chances,
        )  # fmt: skip
        self._put("impression", event.experiment, key, part)

    def _click(self, event: Click, record: RawRecord) -> None:
        self.counts["clicks"] += 1
        seed = seed_of(event.experiment)
        key = key_of(event.impression, seed)
        doc = digest(event.doc or "") if event.rank is None else None
        own = key_of(f"{event.id}\0{event.impression}", seed)
        part = Clicked(
            key, self._ts(record), record.partition, record.offset, own,
            event.rank, doc, event.action, event.ts,
        )  # fmt: skip
        self._put("click", event.experiment, key, part)

    _HANDLERS: Final[dict[type, Callable[..., None]]] = {
        Duel: _duel,
        Duels: _duels,
        Interleaving: _interleaving,
        Impression: _impression,
        Click: _click,
    }

    def _ts(self, record: RawRecord) -> int:
        return max(0, min(record.timestamp, self._now))

    def _group(self, event: Duel | Duels | Interleaving | Impression) -> Group:
        configured = self._plan.experiments[event.experiment].segments
        known = segment_text(event.segment, configured) if configured else EMPTY
        return event.experiment, event.a, event.b, known

    def _put(self, kind: str, experiment: str, key: int, part: Finished | Shown | Clicked) -> None:
        lane = self._lanes.get((kind, experiment))
        if lane is None:
            lane = self._lanes[kind, experiment] = self._plan.lane(kind, experiment)
        place = Place(key % self._plan.spark.partitions, lane, lane.slice_of(part.ts))
        if place not in self.parts:
            self.parts[place], self.newest[place] = [], 0
        self.parts[place].append(part)
        self.newest[place] = max(self.newest[place], part.ts)


def segment_text(segment: Segment | None, configured: Any) -> str:
    """The configured segments that a record names, as JSON, in an order of their own.

    Names that are not configured are left out: records may contain any number of them.

    >>> segment_text({"country": "de", "class": "other"}, {"country": ["de", "fr"]})
    '{"country":"de"}'
    """
    if isinstance(segment, str):
        is_known = any(segment in names for names in configured.values())
        return msgspec.json.encode(segment).decode() if is_known else EMPTY
    named = sorted((segment or {}).items())
    return msgspec.json.encode(
        {kind: name for kind, name in named if name in configured.get(kind, ())}
    ).decode()


def _teams(teams: Iterable[str | None]) -> str:
    return "".join(team or "-" for team in teams)
