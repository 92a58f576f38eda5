"""Guardrails: limits on the shares that a policy's plan gives to arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamduel.config.experiment import GuardrailSettings
from streamduel.preference.arrays import Integers
from streamduel.records import PairShare
from streamduel.stream.plan import Plan

Pair = tuple[str, str]


def guarded_shares(plan: Plan, rails: GuardrailSettings) -> list[PairShare]:
    """A plan's shares within the guardrails; the most frequent pair first.

    First the cap: the share of a pair is reduced so that none of its arms except the champion takes
    part in more than `max_share` of the impressions. The rest goes to the champion alone, which
    costs nothing if it is the best arm. Then the floor, additive: with f = `min_share`, the control
    arm alone gets f + (1 - f) times its former share, and every other pair (1 - f) times its own.

    A frozen pair is not reduced, because an operator chose it. The plan of a paused or finished
    experiment, the champion alone, stays as it is.

    Args:
        plan: the policy's plan.
        rails: the experiment's guardrails.

    Returns:
        Shares above 0 that add up to 1. `remaining` is the plan's.

    >>> from streamduel.stream.plan import PairPlan
    >>> pairs = (PairPlan("ltr-v1", "ltr-v2", 3), PairPlan("bm25", "ltr-v2", 1))
    >>> plan = Plan("ltr-v2", pairs, "rucb")
    >>> rails = GuardrailSettings(control_arm="bm25", min_share=0.1, max_share=0.45)
    >>> for pair in guarded_shares(plan, rails):
    ...     print(pair.a, pair.b, round(pair.share, 3))
    ltr-v1 ltr-v2 0.45
    bm25 ltr-v2 0.225
    ltr-v2 ltr-v2 0.225
    bm25 bm25 0.1
    """
    wanted = plan.shares()
    if plan.status != "running" or (rails.max_share is None and rails.control_arm is None):
        return wanted
    factors = _factors(plan, wanted, rails)
    kept = [(pair, min(factors[pair.a], factors[pair.b])) for pair in wanted]
    freed = sum(pair.share * (1 - factor) for pair, factor in kept)
    extra: dict[Pair, float] = {}
    if freed > 0:
        extra[plan.champion, plan.champion] = (1 - rails.floor) * freed
    if rails.control_arm is not None:
        alone = (rails.control_arm, rails.control_arm)
        extra[alone] = extra.get(alone, 0.0) + rails.floor
    shares = []
    for pair, factor in kept:
        share = (1 - rails.floor) * factor * pair.share + extra.pop((pair.a, pair.b), 0.0)
        shares.append(PairShare(pair.a, pair.b, min(share, 1.0), pair.remaining))
    shares += [PairShare(*pair, min(share, 1.0)) for pair, share in extra.items()]
    return sorted((pair for pair in shares if pair.share > 0), key=lambda pair: -pair.share)


def _factors(plan: Plan, wanted: list[PairShare], rails: GuardrailSettings) -> dict[str, float]:
    """The factor for the pairs of each arm that brings the arm below the cap."""
    takes_part: dict[str, float] = {}
    for pair in wanted:
        for arm in {pair.a, pair.b}:
            takes_part[arm] = takes_part.get(arm, 0.0) + pair.share
    factors = dict.fromkeys(takes_part, 1.0)
    if rails.max_share is not None and not plan.frozen:
        for arm, share in takes_part.items():
            if arm != plan.champion:
                floor = rails.floor if arm == rails.control_arm else 0.0
                allowed = (rails.max_share - floor) / (1 - rails.floor)
                factors[arm] = min(1.0, allowed / share)
    return factors


def share_taken(plan: Plan, rails: GuardrailSettings) -> float:
    """The share of impressions that guardrails take from the policy's own plan.

    A frozen pair takes all that the floor of the control arm leaves.
    """
    if plan.frozen:
        return 1.0
    held = {(pair.a, pair.b): pair.share for pair in guarded_shares(plan, rails)}
    return sum(max(0.0, pair.share - held.get((pair.a, pair.b), 0.0)) for pair in plan.shares())


class Guardrails:
    """The guardrails of one experiment: the frozen pair, and the duels served because of them.

    Args:
        settings: as configured.
        state: a former `state()`; None for a new experiment.

    Attributes:
        frozen: the pair that is served whatever the policy wants; None if there is none.
        served: duels, by pair, since a guardrail required the pair.
    """

    __slots__ = ("_watched", "frozen", "served", "settings")

    def __init__(self, settings: GuardrailSettings, state: Mapping[str, Any] | None = None) -> None:
        self.settings = settings
        frozen = settings.freeze_pair if state is None else state["frozen"]
        self.frozen: Pair | None = (frozen[0], frozen[1]) if frozen else None
        served = [] if state is None else state["served"]
        self.served: dict[Pair, int] = {(a, b): duels for a, b, duels in served}
        self._watched: list[tuple[int, int, Pair]] = []  # two indexes and the names

    @property
    def at_work(self) -> bool:
        """Whether any guardrail may change a policy's plan."""
        limits = self.settings
        return bool(self.frozen or limits.control_arm or limits.max_share is not None)

    def watch(self, plan: Plan, index: Mapping[str, int]) -> None:
        """Count the duels of the pairs that a guardrail added to this plan."""
        self._watched = []
        if self.settings.control_arm is None and not plan.frozen:
            return
        pairs = []
        if plan.status == "running" and self.settings.control_arm is not None:
            pairs.append((self.settings.control_arm, self.settings.control_arm))
        if plan.frozen:
            pairs.append((plan.pairs[0].first, plan.pairs[0].second))
        self._watched = [(index[a], index[b], (a, b)) for a, b in pairs]

    def count(self, first: int, second: int, duels: int) -> None:
        """Count duels of one pair."""
        for one, other, pair in self._watched:
            if (first, second) in {(one, other), (other, one)}:
                self.served[pair] = self.served.get(pair, 0) + duels

    def count_many(self, first: Integers, second: Integers) -> None:
        """Count one duel of each of these pairs."""
        for one, other, pair in self._watched:
            same = (first == one) & (second == other) | (first == other) & (second == one)
            duels = int(np.count_nonzero(same))
            if duels:
                self.served[pair] = self.served.get(pair, 0) + duels

    def needed(self, arm: str) -> str | None:
        """Why an arm cannot be retired, if a guardrail needs it."""
        if arm == self.settings.control_arm:
            return "it is the control arm"
        if self.frozen is not None and arm in self.frozen:
            return "it is in the frozen pair"
        if arm == self.settings.fallback.arm:
            return "it is the fallback"
        return None

    def forget(self, arm: str | None = None) -> None:
        """Forget the duels served with a retired arm, or all of them."""
        kept = self.served.items() if arm is not None else ()
        self.served = {pair: duels for pair, duels in kept if arm not in pair}

    def state(self) -> dict[str, Any]:
        """What restores the object, as plain JSON values."""
        served = [[*pair, duels] for pair, duels in sorted(self.served.items())]
        return {"frozen": self.frozen and list(self.frozen), "served": served}
