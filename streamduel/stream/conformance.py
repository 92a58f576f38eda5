"""Conformance: whether ranker services serve assigned pairs and interleave them fairly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add, sub
from typing import Any, Final

from streamduel.records import Side
from streamduel.stream.plan import Plan
from streamduel.stream.team_patterns import WHOLE, TeamPatterns

GRACE_MS: Final = 3_600_000
"""For an hour after an assignment has replaced a pair, the pair may still be served and its records
may still arrive: caches, batch uploads and sessions that keep their pair are normal."""

IN_FORCE: Final = -1
"""Replaces the last epoch of a pair while the plan in force contains the pair."""

EVEN: Final = ("documents", "top ranks", "prominent ranks")
"""What must balance for each arm and for side a, in this order: see `Conformance.coins`."""

MOST_REPLACED: Final = 10_000
"""Pairs that are kept from assignments before the last one: 2 MB with names of 80 bytes. Above it
the older half is dropped, which takes some milliseconds. 1,000 arms have 500,000 pairs."""

MOST_PAIRS: Final = 1024
"""Pairs that are counted before their counts are added to those of sides and arms: 0.2 MB."""

Coin = tuple[float, float]
"""A feature that is even if a fair coin decides each turn: how much of it an arm or side a has, and
how much its opponents have."""

_SHOWN, _OURS, _THEIRS, _OUR_TOPS, _THEIR_TOPS, _LEAD = range(6)
_NONE: Final = (0,) * 6


class Conformance:
    """Counts what distinguishes fair interleaving of assigned pairs from anything else.

    In team draft and in probabilistic interleaving a coin decides whose turn it is. So for each arm
    against its opponents, and for side a against side b, three features balance in the long run:
    the documents shown, the top ranks, and the prominence of the ranks. That holds for any
    rankings, short ones included. Balanced and optimised interleaving are fair in other ways.

    A ranker service must serve pairs of an assignment. If records contain the assignment's `epoch`,
    it must not be later than the last plan with the pair. The epoch at which a pair came into the
    plan is not kept.

    Args:
        patterns: of the partition.
        state: a former `state()`; None for a new experiment.
        unjudged: the counts at the last reset; None if there was none.
        tells_ranks: whether the teams of impressions are those of the ranks that were shown.

    Attributes:
        unassigned: impressions of a pair that was not assigned.
    """

    __slots__ = (
        "_arms",
        "_assigned",
        "_pairs",
        "_patterns",
        "_pruned_at",
        "_sides",
        "_tells_ranks",
        "_unjudged_arms",
        "_unjudged_sides",
        "unassigned",
    )

    def __init__(
        self,
        patterns: TeamPatterns,
        state: Mapping[str, Any] | None,
        unjudged: Mapping[str, Any] | None = None,
        *,
        tells_ranks: bool = True,
    ) -> None:
        self._patterns, self._tells_ranks = patterns, tells_ranks
        self._pairs: dict[tuple[str, str], list[int]] = {}  # since the last `_settle`
        saved = state or {}
        self.unassigned: int = saved.get("unassigned", 0)
        self._pruned_at: int = saved.get("pruned_at", 0)
        self._sides: list[int] = list(saved.get("sides", [0] * 6))
        arms: dict[str, list[int]] = saved.get("arms", {})
        self._arms = {arm: list(tally) for arm, tally in arms.items()}
        # As of the last reset: subtracted from the counts, which are in the hash of the state and
        # which earlier releases did not begin again.
        before = unjudged or {}
        self._unjudged_sides: list[int] = list(before.get("sides", _NONE))
        self._unjudged_arms: dict[str, list[int]] = dict(before.get("arms", {}))
        # By pair, its names sorted: the last epoch in which a plan named it, and when that ended.
        self._assigned: dict[tuple[str, str], tuple[int, int]] = {
            (a, b): (until, at) for a, b, until, at in saved.get("assigned", ())
        }

    def decided(self, before: Plan | None, plan: Plan, epoch: int, now: int) -> None:
        """A plan replaces another, with the assignment of this epoch."""
        assigned, old = self._assigned, before.pairs if before else ()
        for pair in old:
            assigned[_unordered(pair.first, pair.second)] = epoch - 1, now
        for pair in plan.pairs:
            assigned[_unordered(pair.first, pair.second)] = IN_FORCE, now
        most = len(plan.pairs) + len(old) + MOST_REPLACED
        if now - self._pruned_at > GRACE_MS or len(assigned) > most:
            self._prune(now, len(old))

    def _prune(self, now: int, newest: int) -> None:
        """Drop pairs that were replaced more than `GRACE_MS` ago, or before many others.

        Args:
            now: stream time.
            newest: the number of pairs that have just been replaced, which are kept.
        """
        self._pruned_at = now
        replaced = sorted(
            (at, until, names) for names, (until, at) in self._assigned.items() if until != IN_FORCE
        )
        surplus = len(replaced) - newest - MOST_REPLACED
        if surplus > 0:
            surplus += MOST_REPLACED // 2
        for number, (at, _, names) in enumerate(replaced):
            if number < surplus or at < now - GRACE_MS:
                del self._assigned[names]

    def rewind(self, now: int) -> None:
        """Stream time was set back: no pair was replaced later."""
        self._pruned_at = min(self._pruned_at, now)
        for pair, (until, at) in self._assigned.items():
            self._assigned[pair] = until, min(at, now)

    def reset(self) -> None:
        """Judge the impressions from here on; the numbers of impressions and documents go on."""
        self._settle()
        self._unjudged_sides = list(self._sides)
        self._unjudged_arms = {arm: list(tally) for arm, tally in sorted(self._arms.items())}

    def retire_arm(self, arm: str) -> None:
        """Drop the counts of a retired arm."""
        self._settle()
        self._arms.pop(arm, None)
        self._unjudged_arms.pop(arm, None)

    def shown(
        self, a: str, b: str, teams: Sequence[Side | None], epoch: int | None, now: int
    ) -> None:
        """Count an interleaved impression."""
        ours, theirs, top, other_top, lead = self._patterns.of(teams)[1]
        tally = self._pairs.get((a, b)) or self._tally(a, b)
        tally[_SHOWN] += 1
        tally[_OURS] += ours
        tally[_THEIRS] += theirs
        tally[_OUR_TOPS] += top
        tally[_THEIR_TOPS] += other_top
        tally[_LEAD] += lead
        last = self._assigned.get((a, b) if a < b else (b, a))
        if last is None or (last[0] != IN_FORCE and not _was_assigned(last, epoch, now)):
            self.unassigned += 1

    def _tally(self, a: str, b: str) -> list[int]:
        if len(self._pairs) == MOST_PAIRS:
            self._settle()
        tally = self._pairs[a, b] = [0] * 6
        return tally

    def _settle(self) -> None:
        """Add the counts by pair to those by side and by arm, which are the state."""
        for (a, b), ahead in self._pairs.items():
            shown, ours, theirs, top, other_top, lead = ahead
            behind = shown, theirs, ours, other_top, top, -lead
            for total, gains in (
                (self._sides, ahead),
                (self._arms.setdefault(a, [0] * 6), ahead),
                (self._arms.setdefault(b, [0] * 6), behind),
            ):
                total[:] = map(add, total, gains)
        self._pairs.clear()

    @property
    def impressions(self) -> int:
        """The number of interleaved impressions, with clicks or without."""
        self._settle()
        return self._sides[_SHOWN]

    @property
    def judged(self) -> int:
        """The number of impressions since the last reset, which `coins` are of; 0 without ranks."""
        return self.impressions - self._unjudged_sides[_SHOWN] if self._tells_ranks else 0

    @property
    def ranks(self) -> tuple[int, int]:
        """Documents shown of side a, and of side b, in all impressions."""
        self._settle()
        return self._sides[_OURS], self._sides[_THEIRS]

    def coins(self, arms: Sequence[str]) -> tuple[Coin, ...]:
        """For the sides, and for each arm: the `EVEN` features, and those of the opponents.

        Since the last reset.

        Args:
            arms: the present arms.
        """
        self._settle()
        counted, before = self._arms, self._unjudged_arms
        tallies = [
            (self._sides, self._unjudged_sides),
            *((counted.get(arm, _NONE), before.get(arm, _NONE)) for arm in arms),
        ]
        return tuple(coin for now, then in tallies for coin in _coins([*map(sub, now, then)]))

    @property
    def unjudged(self) -> dict[str, Any]:
        """The counts at the last reset, as plain JSON values; empty without one."""
        if not any(self._unjudged_sides):
            return {}
        return {"sides": list(self._unjudged_sides), "arms": dict(self._unjudged_arms)}

    def state(self) -> dict[str, Any]:
        """What restores the object, as plain JSON values."""
        self._settle()
        return {
            "sides": list(self._sides),
            "arms": {arm: list(tally) for arm, tally in sorted(self._arms.items())},
            "unassigned": self.unassigned,
            "assigned": [[*pair, *last] for pair, last in sorted(self._assigned.items())],
            "pruned_at": self._pruned_at,
        }


def _coins(tally: Sequence[int]) -> tuple[Coin, Coin, Coin]:
    """Documents, top ranks and prominence; an impression has a prominence of 1, split in two."""
    lead = tally[_LEAD] / WHOLE
    prominence = (tally[_SHOWN] + lead) / 2, (tally[_SHOWN] - lead) / 2
    return (
        (tally[_OURS], tally[_THEIRS]),
        (tally[_OUR_TOPS], tally[_THEIR_TOPS]),
        prominence,
    )


def _unordered(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _was_assigned(last: tuple[int, int], epoch: int | None, now: int) -> bool:
    """Whether an impression of a pair is explained by the pair's last time in the plan, now over.

    The beginning of that time is not kept, so smaller epochs are accepted.
    """
    until, at = last
    return at >= now - GRACE_MS and (epoch is None or epoch <= until)
