"""One bucket: the slices that are still open for a share of all ids, and how they close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamduel.interleaving.credit import Click as CreditClick
from streamduel.stream.attribution import MAX_CLICKS
from streamduel.stream.join_state import rank_of
from streamduel_spark.crediting import A_WINS, B_WINS, NO_DUEL, TIE, Crediting
from streamduel_spark.parts import (
    Chunk,
    Clicked,
    Counted,
    Finished,
    Group,
    Keys,
    Output,
    Shown,
    Tally,
    chunk_of,
    unpack_chunk,
    unpack_clicked,
    unpack_finished,
    unpack_shown,
)
from streamduel_spark.plan import SEEN_SPANS, Lane, Plan

INDEX: Final = "index"

SHARE_BYTES: Final = 2**26
"""Bytes of the parts that a slice is closed with at a time: in Python, they take ten times as much
memory. A writer that sets timestamps can put any number of records into one slice."""

MAX_PARTS: Final = 3 * 2**19
"""Parts of a share beyond which those that cannot count are dropped while the others are read: a
share has fewer, unless a writer repeats one id, or clicks on one impression, without end."""

MAX_UNKNOWN: Final = 1000
"""Pairs with an arm that is not configured, per slice: those with the most duels. Control records
add a few arms, but a writer of the topic can invent any number, and the driver holds all pairs."""

Marks = NDArray[np.bool_]
_Part = TypeVar("_Part", Finished, Shown, Clicked)


class Store(Protocol):
    """The state of one bucket, by key."""

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: str) -> None:
        """Remove a key."""


class Index(msgspec.Struct, array_like=True):
    """What the store holds.

    Attributes:
        chunks: by lane and by the beginning of a slice, the number of its chunks.
        seen: by lane, the beginnings of the spans whose ids are remembered.
    """

    chunks: dict[str, dict[int, int]] = {}
    seen: dict[str, list[int]] = {}


class Share(NamedTuple):
    """Some of the ids of a bucket: what concerns an id is in one share.

    Attributes:
        number: of this share.
        shares: the number of shares.
        partitions: the number of buckets, by which ids were divided before.
    """

    number: int
    shares: int
    partitions: int

    def of(self, unpack: Callable[[bytes], list[_Part]], bodies: Iterable[bytes]) -> list[_Part]:
        """The parts of this share, in the order of their time."""
        parts: list[_Part] = []
        most = MAX_PARTS
        for body in bodies:
            parts += [part for part in unpack(body) if self._has(part.key)]
            if len(parts) > most:
                parts = _countable(parts)
                most = max(MAX_PARTS, 2 * len(parts))
        return sorted(parts, key=_order)

    def _has(self, key: int) -> bool:
        return key // self.partitions % self.shares == self.number


def _order(part: Finished | Shown | Clicked) -> tuple[int, int, int]:
    return part.ts, part.partition, part.offset


def _countable(parts: list[_Part]) -> list[_Part]:
    """Of parts with the same id the first, and of the clicks on an impression the first ones."""
    seen: set[int] = set()
    found: list[_Part] = []
    per_key: Counter[int] = Counter()
    for part in sorted(parts, key=_order):
        own = part.own if isinstance(part, Clicked) else part.key
        if own not in seen and per_key[part.key] < MAX_CLICKS:
            seen.add(own)
            per_key[part.key] += 1
            found.append(part)
    return found


class Bucket:
    """Stores the chunks of open slices, and counts the duels of a slice when it closes.

    The result is a function of the records in a slice and, for impressions, of the clicks within a
    join window of it: not of the order in which Spark delivered them.

    Args:
        plan: the experiments and limits.
        store: its state; `save` before another `Bucket` reads it.
        crediting: credits impressions.
    """

    def __init__(self, plan: Plan, store: Store, crediting: Crediting) -> None:
        self._plan, self._store, self._crediting = plan, store, crediting
        self._partitions = plan.spark.partitions
        saved = store.get(INDEX)
        self._index = Index() if saved is None else msgspec.msgpack.decode(saved, type=Index)

    def save(self) -> None:
        """Save what the store holds."""
        self._store.put(INDEX, msgspec.msgpack.encode(self._index))

    def add(self, lane: str, start: int, chunk: bytes) -> int | None:
        """Store a chunk; the watermark at which its slice is due, if it is the first one."""
        slices = self._index.chunks.setdefault(lane, {})
        number = slices.get(start, 0)
        slices[start] = number + 1
        self._store.put(f"{lane}/{start}/{number}", chunk)
        return None if number else Lane.parse(lane).due(start)

    def advance(self, watermark: int) -> Iterator[Output]:
        """Close the slices that are due at a watermark, in the order of their time."""
        due = sorted(
            (lane.due(start), name, start)
            for name, slices in self._index.chunks.items()
            for lane in [Lane.parse(name)]
            for start in slices
            if lane.due(start) <= watermark
        )
        for _, name, start in due:
            lane = Lane.parse(name)
            if close := self._CLOSE.get(lane.kind):
                size = sum(map(len, self._bodies(lane, start)))
                shares = 1 + size // SHARE_BYTES
                for share in range(shares):
                    yield from close(self, lane, start, Share(share, shares, self._partitions))
            self._drop(name, start)

    def _close_duels(self, lane: Lane, start: int, share: Share) -> Iterator[Output]:
        parts = share.of(unpack_finished, self._bodies(lane, start))
        fresh = self._fresh(lane, start, [part.key for part in parts])
        counts = Counter((parts[place].group, parts[place].outcome) for place in fresh)
        for part in (parts[place] for place in fresh):
            if part.wins is not None:  # it was counted as one duel
                counts[part.group, part.outcome] -= 1
                for outcome, count in enumerate(part.wins):
                    counts[part.group, outcome] += count
        yield from self._counted(lane, start, counts)
        yield Tally({"duplicates": len(parts) - len(fresh)})

    def _close_clicks(self, lane: Lane, start: int, share: Share) -> Iterator[Output]:
        """Keep the clicks, without duplicates, until no impression can need them."""
        parts = share.of(unpack_clicked, self._bodies(lane, start))
        fresh = self._fresh(lane, start, [part.own for part in parts])
        self.add(str(lane._replace(kind="distinct")), start, chunk_of([parts[it] for it in fresh]))
        yield Tally({"duplicates": len(parts) - len(fresh)})

    def _close_impressions(self, lane: Lane, start: int, share: Share) -> Iterator[Output]:
        parts = share.of(unpack_shown, self._bodies(lane, start))
        fresh = self._fresh(lane, start, [part.key for part in parts])
        shown = {parts[place].key: parts[place] for place in fresh}
        clicks = self._clicks_on(lane, start, shown)
        tally = Counter({"duplicates": len(parts) - len(shown)})
        counts: Counter[tuple[Group, int]] = Counter()
        for key, impression in shown.items():
            found = _credited(impression, clicks.get(key, []), tally)
            outcome = self._crediting.outcome(
                impression.group[0], impression.teams, impression.chances, found
            )
            counts[impression.group, outcome] += 1
        yield from self._counted(lane, start, counts)
        yield Tally(dict(tally))

    _CLOSE: Final[dict[str, Callable[..., Iterator[Output]]]] = {
        "duel": _close_duels,
        "click": _close_clicks,
        "impression": _close_impressions,
    }

    def _counted(
        self, lane: Lane, start: int, counts: Counter[tuple[Group, int]]
    ) -> Iterator[Output]:
        """The counts of each pair, without those of unknown arms that are too many."""
        pairs = list(_pairs(lane, start, counts))
        arms = {
            name: frozenset(self._plan.experiments[name].arms)
            for name in {it.group[0] for it in pairs} & self._plan.experiments.keys()
        }
        unknown: Counter[tuple[str, ...]] = Counter()
        for it in pairs:
            if not {*it.group[1:3]} <= arms.get(it.group[0], frozenset()):
                unknown[it.group[:3]] += it.wins_a + it.wins_b + it.ties
        dropped = {pair for pair, _ in unknown.most_common()[MAX_UNKNOWN:]}
        yield from (it for it in pairs if it.group[:3] not in dropped)
        yield Tally({"pairs of unknown arms dropped": len(dropped)})

    def _clicks_on(
        self, lane: Lane, start: int, shown: dict[int, Shown]
    ) -> dict[int, list[Clicked]]:
        """The clicks within the join window of each impression, by the impression's key."""
        wanted = np.sort(np.fromiter(shown, np.int64, len(shown)))
        clicks = lane._replace(kind="distinct")
        window, end = lane.window_ms, start + lane.slice_ms
        found: dict[int, list[Clicked]] = {}
        for other in sorted(self._index.chunks.get(str(clicks), ())):
            if other >= end + window or other + clicks.slice_ms <= start - window:
                continue
            for chunk in self._chunks(clicks, other):
                matching = np.flatnonzero(_within(np.frombuffer(chunk.keys, np.int64), wanted))
                if not len(matching):
                    continue
                parts = unpack_clicked(chunk.body)
                for place in matching.tolist():
                    click = parts[place]
                    if abs(click.ts - shown[click.key].ts) <= window:
                        found.setdefault(click.key, []).append(click)
        return found

    def _fresh(self, lane: Lane, start: int, keys: Sequence[int]) -> list[int]:
        """The places of keys that were not seen before, in this slice or in the dedupe window."""
        column: Keys = np.fromiter(keys, np.int64, len(keys))
        seen = np.zeros(len(column), bool)
        name, span_ms = str(lane), max(lane.slice_ms, self._plan.dedupe_ms // SEEN_SPANS)
        spans = self._index.seen.setdefault(name, [])
        for span in list(spans):
            if span + span_ms + self._plan.dedupe_ms < start:
                spans.remove(span)
                self._store.delete(f"seen/{name}/{span}")
            else:
                seen |= _within(column, self._span(name, span))
        unique, first = np.unique(column, return_index=True)  # of equal keys, the first place
        span = start - start % span_ms
        if span not in spans:
            spans.append(span)
        merged = np.union1d(self._span(name, span), unique)
        self._store.put(f"seen/{name}/{span}", merged.tobytes())
        return sorted(first[~seen[first]].tolist())

    def _span(self, name: str, span: int) -> Keys:
        return np.frombuffer(self._store.get(f"seen/{name}/{span}") or b"", np.int64)

    def _chunks(self, lane: Lane, start: int) -> Iterator[Chunk]:
        for number in range(self._index.chunks[str(lane)][start]):
            value = self._store.get(f"{lane}/{start}/{number}")
            assert value is not None, "the index names it"
            yield unpack_chunk(value)

    def _bodies(self, lane: Lane, start: int) -> Iterator[bytes]:
        return (chunk.body for chunk in self._chunks(lane, start))

    def _drop(self, name: str, start: int) -> None:
        for number in range(self._index.chunks[name].pop(start)):
            self._store.delete(f"{name}/{start}/{number}")


def _credited(impression: Shown, clicks: list[Clicked], tally: Counter[str]) -> list[CreditClick]:
    """The clicks of an impression in their order, without those that do not fit it."""
    clicks.sort(key=lambda click: (click.ts, click.partition, click.offset))
    found: list[CreditClick] = []
    for click in clicks:
        rank = click.rank if click.doc is None else rank_of(click.doc, impression.docs or b"")
        if rank is None or rank >= len(impression.teams) or len(found) >= MAX_CLICKS:
            tally["unusable clicks"] += 1
            continue
        tally["credited"] += 1
        found.append(CreditClick(rank, click.action, click.at))
    return found


def _within(keys: Keys, ordered: Keys) -> Marks:
    """Whether each key is among others in ascending order."""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    found: Marks = ordered[places] == keys
    return found


def _pairs(lane: Lane, start: int, counts: Counter[tuple[Group, int]]) -> Iterator[Counted]:
    """The counts of each pair; (x, y) and (y, x) are one."""
    pairs: dict[Group, list[int]] = {}
    for (group, outcome), count in counts.items():
        if outcome == NO_DUEL:
            continue
        experiment, a, b, segments = group
        if a < b:
            pairs.setdefault(group, [0, 0, 0])[outcome] += count
        else:
            swapped = (B_WINS, A_WINS, TIE)[outcome]
            pairs.setdefault((experiment, b, a, segments), [0, 0, 0])[swapped] += count
    for group, (wins_a, wins_b, ties) in sorted(pairs.items()):
        yield Counted(group, str(lane), start, wins_a, wins_b, ties)
