"""Examples: impressions of the leading pair, kept for people to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from streamduel.config.experiment import MAX_EXAMPLES
from streamduel.errors import shortened
from streamduel.preference.evidence import closest_challenger
from streamduel.records import MAX_DOC as MAX_ID
from streamduel.records import MAX_NAME, Impression, Interleaving, RankClick, Side
from streamduel.stream.coding import OUTCOMES, WINNERS
from streamduel.stream.dedupe import record_key
from streamduel.stream.tallies import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamduel.policies import Policy
    from streamduel.stream.join_state import OpenImpression

MAX_QUERY: Final = 100
"""Characters kept of a query. Twenty examples take some 20 kB of a snapshot."""

MAX_DOC: Final = 60
"""Characters kept of a document's id."""

MAX_RANKS: Final = 10
"""Ranks kept of a list: the first page of most search engines."""

PASSES: Final = 256
"""After this many open impressions, the next ones are drawn half as often: this many texts wait in
memory, and as many again for each doubling of the traffic within a join window."""

_CHECK_AGAIN: Final = 20
"""After n duels, the leading pair is found again n/20 duels later."""

_DRAW_BITS: Final = 53
"""Of the 128 bits of the hash of an id: other programs' JSON keeps integers of this length."""

_SPARE_BITS: Final = 128 - _DRAW_BITS

NO_DOCS: Final = msgspec.Raw(b"null")
"""The `docs` of an interleaving that names none."""

_ID_BYTES: Final = 8 * MAX_ID
"""JSON of a document's id at most: six bytes for an escaped character, and white space."""

_IDS: Final = msgspec.json.Decoder(list[str])

Arm = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Doc = Annotated[str, Meta(max_length=MAX_DOC)]


class Example(msgspec.Struct, frozen=True, gc=False):
    """An impression that a user decided, with its list.

    `a` and `b` are the rankers, and `winner` the side that the clicks decided for. `docs` and
    `teams` have the first ten ranks of `ranks`, long texts end with an ellipsis. `clicks` are
    the first ten clicked ranks, from 0. `offset` is that of the record, `at` the stream time of its
    arrival in milliseconds. Of all impressions, those with the smallest `draw` are kept.
    """

    offset: Count
    at: Count
    a: Arm
    b: Arm
    winner: Side
    query: Annotated[str, Meta(max_length=MAX_QUERY)]
    docs: Annotated[tuple[Doc, ...], Meta(max_length=MAX_RANKS)]
    teams: Annotated[tuple[Side | None, ...], Meta(max_length=MAX_RANKS)]
    ranks: Count
    clicks: Annotated[tuple[Count, ...], Meta(max_length=MAX_RANKS)]
    draw: Annotated[int, Meta(ge=0, lt=2**_DRAW_BITS)]


class ExamplesState(msgspec.Struct, omit_defaults=True):
    """What restores `Examples`.

    Attributes:
        leading: the leading pair; None while unknown.
        since: the first offset whose impressions are drawn.
        level: of the impressions, one in 2 ** `level` is drawn; none with the largest.
        passed: impressions drawn at this level.
        check_at: the number of duels at which the leading pair is found again.
        kept: the examples, in the order in which they were decided.
    """

    leading: tuple[Arm, Arm] | None = None
    since: Count = 0
    level: Annotated[int, Meta(ge=0, le=_DRAW_BITS + 1)] = 0
    passed: Count = 0
    check_at: Count = 0
    kept: Annotated[list[Example], Meta(max_length=MAX_EXAMPLES)] = []


class _Shown(NamedTuple):
    """The text of an impression that waits for its clicks."""

    draw: int
    query: str
    docs: tuple[str, ...]


class Examples:
    """A sample of the impressions of the leading pair: of the champion and its closest challenger.

    Impressions are drawn by the hash of their id, those with the smallest are kept: a function of
    the click log. When another pair leads, sampling starts again, and examples of earlier pairs
    stay until their places are needed. They decide nothing.

    While an impression waits for clicks, its text waits in memory, rebuilt after a restart like
    the impression itself. So whether it is drawn must not depend on what has happened in between:
    an impression counts only if it would be drawn at the moment when its window closes, too, and
    the chance to be drawn only shrinks while a pair leads.

    Args:
        limit: the most examples; with 0, none are kept.
        state: a former `state()`; None for a new experiment, or one of an older release.

    Attributes:
        limit: the most examples.
        waiting: the texts of open impressions, by offset; not part of the state.
    """

    __slots__ = ("_state", "limit", "waiting")

    def __init__(self, limit: int, state: Any = None) -> None:
        self.limit = limit
        self._state = msgspec.convert(state or {}, ExamplesState)
        self.waiting: dict[int, _Shown] = {}

    @property
    def newest_first(self) -> tuple[Example, ...]:
        """The examples, those of the leading pair before the others."""
        newest = self._state.kept[::-1]
        return tuple(sorted(newest, key=lambda each: not self._leads(each.a, each.b)))

    def due(self, duels: int) -> bool:
        """Whether the leading pair must be found again after this many duels."""
        return self.limit > 0 and duels >= self._state.check_at

    def lead(self, policy: Policy, champion: str, arms: Sequence[str], offset: int) -> None:
        """Find the leading pair: the champion, and its closest challenger.

        Args:
            policy: it has learned all duels.
            champion: that of the plan.
            arms: K names.
            offset: of the present record; impressions of later ones are drawn.
        """
        state, best = self._state, arms.index(champion)
        challenger = arms[closest_challenger(policy.wins, best, policy.seeks)]
        state.check_at = policy.duels + 1 + policy.duels // _CHECK_AGAIN
        if not self._leads(champion, challenger):
            state.leading, state.since = (champion, challenger), offset + 1
            state.level = state.passed = 0
            self.waiting.clear()

    def show(self, event: Impression | Interleaving, offset: int, *, again: bool = False) -> None:
        """Draw an impression by the hash of its id; its query and documents must be logged.

        Args:
            event: the impression.
            offset: the record's.
            again: whether it was counted before a restart.
        """
        if not self._leads(event.a, event.b):
            return
        state, draw = self._state, record_key(event.id, 0) >> _SPARE_BITS
        if not self._is_drawn(draw, offset):
            return
        docs = _documents(event)
        if event.query is None or docs is None or not {"a", "b"} <= set(event.teams):
            return
        self.waiting[offset] = _Shown(draw, shortened(event.query, MAX_QUERY), docs)
        if not again:
            state.passed += 1
            if state.passed == PASSES:
                state.passed, state.level = 0, state.level + 1

    def _is_drawn(self, draw: int, offset: int) -> bool:
        state = self._state
        return draw < 2**_DRAW_BITS >> state.level and offset >= state.since

    def _leads(self, first: str, second: str) -> bool:
        return self._state.leading in {(first, second), (second, first)}

    def decide(
        self,
        shown: OpenImpression | Interleaving,
        clicks: Iterable[int | RankClick],
        code: int,
        offset: int,
        at: int,
    ) -> None:
        """Keep an impression whose window has closed, if it was drawn and has a winner.

        Args:
            shown: the impression.
            clicks: on it, in any order.
            code: see `Coder`.
            offset: the record's.
            at: stream time of its arrival.
        """
        text, state = self.waiting.pop(offset, None), self._state
        if text is None or code < 0 or not self._is_drawn(text.draw, offset):
            return
        winner = WINNERS[code % OUTCOMES]
        if winner is None:
            return
        ranks = {it if isinstance(it, int) else it.rank for it in clicks}
        place = self._place(text.draw)
        if place is None:
            return
        del state.kept[place : place + 1]
        state.kept.append(
            Example(
                offset, at, shown.a, shown.b, winner, text.query, text.docs,
                tuple(shown.teams[:MAX_RANKS]), len(shown.teams),
                tuple(sorted(ranks)[:MAX_RANKS]), text.draw,
            )
        )  # fmt: skip

    def _place(self, draw: int) -> int | None:
        """The index of the example that this one replaces; the number of examples if none."""
        kept = self._state.kept
        if len(kept) < self.limit:
            return len(kept)
        for place, each in enumerate(kept):
            if not self._leads(each.a, each.b):
                return place
        largest = max(range(len(kept)), key=lambda place: kept[place].draw)
        return largest if draw < kept[largest].draw else None

    def resume(self, oldest: int | None) -> None:
        """A restart has rebuilt the open impressions; the oldest has this offset."""
        self.waiting = {
            offset: text
            for offset, text in self.waiting.items()
            if oldest is not None and offset >= oldest
        }

    def retire_arm(self, arm: str) -> None:
        """Forget the examples of an arm."""
        state = self._state
        state.kept = [each for each in state.kept if arm not in {each.a, each.b}]
        if state.leading and arm in state.leading:
            state.leading, state.check_at = None, 0
            self.waiting.clear()

    def changed(self, limit: int) -> Examples:
        """With another limit; the latest stay."""
        if limit == 0:
            return Examples(0)
        state = msgspec.structs.replace(self._state, kept=self._state.kept[-limit:])
        examples = Examples(limit, msgspec.to_builtins(state))
        examples.waiting = self.waiting
        return examples

    def state(self) -> dict[str, Any]:
        """What restores the object, as plain JSON values; empty before the first query."""
        saved: dict[str, Any] = msgspec.to_builtins(self._state)
        return saved


def _documents(event: Impression | Interleaving) -> tuple[str, ...] | None:
    """The documents of the first ranks; None if there is not an id for each rank."""
    docs, ranks = event.docs, len(event.teams)
    if isinstance(docs, msgspec.Raw):  # of an interleaving: any JSON
        try:
            docs = _IDS.decode(docs) if len(docs) <= ranks * _ID_BYTES else None
        except msgspec.DecodeError:
            return None
    if docs is None or len(docs) != ranks:
        return None
    return tuple(shortened(doc, MAX_DOC) for doc in docs[:MAX_RANKS])
