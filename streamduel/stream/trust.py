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
"""Instead of the last epoch of a pair that the plan in force names."""

WHOLE: Final = 1000
"""What a list's prominence comes to: leads are whole thousandths of it, so that their sum is exact
and the same on every machine."""

MOST_PATTERNS: Final = 4096
"""Patterns of teams whose look is kept; ten ranks of two teams have 1024."""

EVEN: Final = ("documents", "top ranks", "prominent ranks")
"""What comes out even for each arm, and for side a, in this order: see `Trust.coins`."""

Look = tuple[int, int, int, int, int]
Coin = tuple[float, float]

_SHOWN, _OURS, _THEIRS, _OUR_TOPS, _THEIR_TOPS, _LEAD = range(6)


def look_of(teams: Sequence[Side | None]) -> Look:
    """What a list shows of the two sides.

    Returns:
        Documents of side a, and of side b; whether the top rank is a's, and b's; and by how many
        thousandths of all prominence a leads, rank r from 0 having the prominence 1/(r + 1).

    >>> look_of(["a", "b", "b"]), look_of(["a", "a", "b"])
    ((1, 2, 1, 0, 91), (2, 1, 1, 0, 636))
    """
    ours, theirs = teams.count("a"), teams.count("b")
    if not teams:
        return 0, 0, 0, 0, 0
    prominence = [1 / (rank + 1) for rank in range(len(teams))]
    signs = [(team == "a") - (team == "b") for team in teams]
    lead = sum(sign * each for sign, each in zip(signs, prominence, strict=True))
    top = teams[0]
    return ours, theirs, int(top == "a"), int(top == "b"), round(WHOLE * lead / sum(prominence))


class Trust:
    """Counts what tells fair interleaving from unfair, and obedience from its lack.

    Whoever interleaves fairly is as kind to one ranker as to the other. In team draft and in
    probabilistic interleaving a coin decides whose turn it is, and so, for each arm against
    whomever it meets, and for side a against side b, three things come out even in the long run:
    the documents shown, the top ranks, and the prominence of the ranks. That is so whatever the
    rankings, short ones included. Balanced and optimised interleaving are fair in other ways.

    Whoever obeys serves pairs that an assignment has named. If records have the assignment's
    `epoch`, the pair must not have been out of the plan by then.

    Args:
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        unassigned: impressions of a pair that was not assigned.
    """

    __slots__ = ("_arms", "_assigned", "_looked_at", "_looks", "_sides", "unassigned")

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        self.unassigned: int = state["unassigned"] if state else 0
        self._looked_at: int = state["looked_at"] if state else 0
        self._sides: list[int] = list(state["sides"]) if state else [0] * 6
        arms = state["arms"] if state else {}
        self._arms: dict[str, list[int]] = {arm: list(tally) for arm, tally in arms.items()}
        # By pair, its names sorted: the last epoch in which a plan named it, and when that ended.
        pairs = state["assigned"] if state else []
        self._assigned: dict[tuple[str, str], tuple[int, int]] = {
            (a, b): (until, at) for a, b, until, at in pairs
        }
        self._looks: dict[tuple[Side | None, ...], Look] = {}

    def decided(self, before: Plan | None, plan: Plan, epoch: int, now: int) -> None:
        """A plan takes the place of another, by the assignment of that epoch."""
        assigned = self._assigned
        for pair in before.pairs if before else ():
            assigned[_unordered(pair.first, pair.second)] = epoch - 1, now
        for pair in plan.pairs:
            assigned[_unordered(pair.first, pair.second)] = IN_FORCE, now
        if now - self._looked_at > GRACE_MS:  # seldom: there may be as many as arms have pairs
            self._looked_at = now
            past = now - GRACE_MS
            for names, (until, at) in list(assigned.items()):
                if until != IN_FORCE and at < past:
                    del assigned[names]

    def left(self, arm: str) -> None:
        """An arm was retired: what was counted of it goes."""
        self._arms.pop(arm, None)

    def shown(
        self, a: str, b: str, teams: Sequence[Side | None], epoch: int | None, now: int
    ) -> None:
        """An interleaved impression has come."""
        pattern = tuple(teams)
        look = self._looks.get(pattern)
        if look is None:
            look = look_of(pattern)
            if len(self._looks) < MOST_PATTERNS:
                self._looks[pattern] = look
        ours, theirs, top, other_top, lead = look
        arms = self._arms
        for tally in (self._sides, arms.get(a) or self._tally(a)):
            tally[_SHOWN] += 1
            tally[_OURS] += ours
            tally[_THEIRS] += theirs
            tally[_OUR_TOPS] += top
            tally[_THEIR_TOPS] += other_top
            tally[_LEAD] += lead
        tally = arms.get(b) or self._tally(b)
        tally[_SHOWN] += 1
        tally[_OURS] += theirs
        tally[_THEIRS] += ours
        tally[_OUR_TOPS] += other_top
        tally[_THEIR_TOPS] += top
        tally[_LEAD] -= lead
        last = self._assigned.get(_unordered(a, b))
        if last is None or not _is_obedient(last, epoch, now):
            self.unassigned += 1

    def _tally(self, arm: str) -> list[int]:
        tally = self._arms[arm] = [0] * 6
        return tally

    @property
    def impressions(self) -> int:
        """Interleaved ones, with their clicks or without."""
        return self._sides[_SHOWN]

    @property
    def ranks(self) -> tuple[int, int]:
        """Documents shown of side a, and of side b, of all impressions."""
        return self._sides[_OURS], self._sides[_THEIRS]

    def coins(self, arms: Sequence[str]) -> tuple[Coin, ...]:
        """What should be even: for the sides, and for each arm, `EVEN` and what stands against it.

        Args:
            arms: those that compete.
        """
        none = [0] * 6
        tallies = [self._sides, *(self._arms.get(arm, none) for arm in arms)]
        return tuple(coin for tally in tallies for coin in _coins(tally))

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "sides": list(self._sides),
            "arms": {arm: list(tally) for arm, tally in sorted(self._arms.items())},
            "unassigned": self.unassigned,
            "assigned": [[*pair, *last] for pair, last in sorted(self._assigned.items())],
            "looked_at": self._looked_at,
        }


def _coins(tally: Sequence[int]) -> tuple[Coin, Coin, Coin]:
    """Documents, top ranks, and prominence: of each impression one whole part, split in two."""
    lead = tally[_LEAD] / WHOLE
    prominence = (tally[_SHOWN] + lead) / 2, (tally[_SHOWN] - lead) / 2
    return (
        (tally[_OURS], tally[_THEIRS]),
        (tally[_OUR_TOPS], tally[_THEIR_TOPS]),
        prominence,
    )


def _unordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _is_obedient(last: tuple[int, int], epoch: int | None, now: int) -> bool:
    """Whether a pair may be served, whose last time in the plan was this one.

    When that time, and earlier ones, began is not remembered: smaller epochs get the benefit of the
    doubt.
    """
    until, at = last
    if until == IN_FORCE:
        return True
    return at >= now - GRACE_MS and (epoch is None or epoch <= until)
