"""Whether ranker services do what they were asked to: what their impressions give away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamduel.records import Side
from streamduel.stream.plan import Plan

GRACE_MS: Final = 3_600_000
"""A pair may be served, and its record be on the way, for an hour after an assignment named it:
caches, batch uploads and sessions that keep their pair are no fault."""

IN_FORCE: Final = -1
"""Instead of the time when a pair was assigned last."""

_FIELDS: Final = (
    "impressions", "ranks_a", "ranks_b", "more_a", "more_b", "top_a", "top_b", "unassigned",
)  # fmt: skip


class Trust:
    """Counts what tells fair interleaving from unfair, and obedience from its lack.

    Whoever interleaves fairly gives each side the longer team as often as the other one, and the
    top rank, too: a coin decides both in team draft and in probabilistic interleaving. And he
    serves pairs that an assignment has named.

    Args:
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        impressions: interleaved ones, with their clicks or without.
        ranks_a: documents shown of side a, of all impressions.
        ranks_b: of side b.
        more_a: impressions in which side a had more documents.
        more_b: in which side b had more.
        top_a: impressions with a document of side a at the top.
        top_b: of side b.
        unassigned: impressions of a pair that no assignment of the last hour has named.
    """

    __slots__ = ("_assigned", "_looked_at", *_FIELDS)

    impressions: int
    ranks_a: int
    ranks_b: int
    more_a: int
    more_b: int
    top_a: int
    top_b: int
    unassigned: int

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        for field in _FIELDS:
            setattr(self, field, state[field] if state else 0)
        self._looked_at: int = state["looked_at"] if state else 0
        pairs = state["assigned"] if state else []
        self._assigned: dict[tuple[str, str], int] = {(a, b): at for a, b, at in pairs}

    def decided(self, before: Plan | None, plan: Plan, now: int) -> None:
        """A plan takes the place of another."""
        assigned = self._assigned
        for pair in before.pairs if before else ():
            assigned[pair.first, pair.second] = now
        for pair in plan.pairs:
            assigned[pair.first, pair.second] = IN_FORCE
        if now - self._looked_at > GRACE_MS:  # seldom: there may be as many as arms have pairs
            self._looked_at = now
            for gone in [it for it, at in assigned.items() if IN_FORCE < at < now - GRACE_MS]:
                del assigned[gone]

    def shown(self, a: str, b: str, teams: Sequence[Side | None], now: int) -> None:
        """An interleaved impression has come."""
        ours, theirs = teams.count("a"), teams.count("b")
        self.impressions += 1
        self.ranks_a += ours
        self.ranks_b += theirs
        self.more_a += ours > theirs
        self.more_b += theirs > ours
        if teams:
            self.top_a += teams[0] == "a"
            self.top_b += teams[0] == "b"
        at = self._assigned.get((a, b), self._assigned.get((b, a)))
        if at is None or IN_FORCE < at < now - GRACE_MS:
            self.unassigned += 1

    @property
    def coins(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """What should be even: who had the longer team, and who the top rank."""
        return (self.more_a, self.more_b), (self.top_a, self.top_b)

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        assigned = [[*pair, at] for pair, at in sorted(self._assigned.items())]
        counts = {field: getattr(self, field) for field in _FIELDS}
        return {**counts, "assigned": assigned, "looked_at": self._looked_at}
