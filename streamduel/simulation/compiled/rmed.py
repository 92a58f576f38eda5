"""RMED1, RMED2 and RMED2FH, compiled: `streamduel.policies.rmed1` and so on, step by step."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from streamduel.policies import RMED1, RMED2, RMED2FH, Policy
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arena import Arena, below, fight, is_stocked
from streamduel.simulation.compiled.choice import NONE, least_of, one_of_least
from streamduel.simulation.compiled.compiled_course import CompiledCourse
from streamduel.simulation.compiled.divergence import Divergence, divergence, refresh
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.logarithm import ln
from streamduel.simulation.environment import Environment


class Passes(NamedTuple):
    """What RMED keeps, by the same names; arms as marks instead of lists.

    Attributes:
        order: the arms, and `pairs` (2, K (K - 1) / 2), in their fixed order.
        waiting: L_R; of it, the first `now.n_waiting` count, and the last of those is next.
        joining: L_N.
        drawn: all but L_R.
        kept: b(l) of every arm, for RMED2FH, or NONE.
        row: room for one number for each arm, and `lead` too.
        now: one record of what is a single number there.
    """

    order: Integers
    pairs: Integers
    waiting: Integers
    joining: Booleans
    drawn: Booleans
    kept: Integers
    row: Floats
    lead: Floats
    now: Any


_NOW = np.dtype(
    [
        ("n_waiting", "i8"),
        ("next_pair", "i8"),
        ("explored", "i8"),
        ("exploring", "?"),
        ("concluding", "?"),
        ("has_kept", "?"),
    ]
)


class Settings(NamedTuple):
    """What does not change.

    Attributes:
        slack: f(K).
        alpha: α, for RMED2.
        meetings: how often every pair has to meet, or 0 for RMED2, where that grows.
        by_price: whether opponents are chosen by their price: RMED2 and RMED2FH.
        keeps: whether these opponents are kept: RMED2FH.
    """

    slack: float
    alpha: float
    meetings: int
    by_price: bool
    keeps: bool


class RMEDCourse(CompiledCourse):
    """The course of all three; the kernel leaps over duels of a sole arm as RMED does."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, RMED1)
        own, n_arms = self._state["own"], policy.n_arms
        self._settings = Settings(
            slack=policy._slack,
            alpha=policy.alpha if isinstance(policy, RMED2) else 0.0,
            meetings=policy._needed(1) if type(policy) is not RMED2 else 0,
            by_price=isinstance(policy, RMED2),
            keeps=isinstance(policy, RMED2FH),
        )
        self._divergence = divergence(self._wins)
        waiting, kept = own["waiting"], own.get("kept")
        self._passes = Passes(
            order=policy._order,
            pairs=np.ascontiguousarray(policy._pairs),
            waiting=np.array([*waiting, *[NONE] * (n_arms - len(waiting))]),
            joining=np.zeros(n_arms, dtype=np.bool_),
            drawn=np.ones(n_arms, dtype=np.bool_),
            kept=np.array([NONE if arm is None else arm for arm in kept or [None] * n_arms]),
            row=np.zeros(n_arms),
            lead=np.zeros(n_arms),
            now=np.zeros(1, dtype=_NOW),
        )
        self._passes.joining[own["joining"]] = True
        self._passes.drawn[waiting] = False
        now = self._passes.now
        now["n_waiting"], now["next_pair"] = len(waiting), own["next_pair"]
        now["exploring"], now["concluding"] = own["exploring"], own["concluding"]
        now["has_kept"] = kept is not None

    def _draws_per_step(self) -> int:
        return 4 + len(self._wins)  # i*, b(l), the opponent; once, the b of all

    def _run(self, arena: Arena, duels: int, until: int) -> int:
        return run(arena, self._divergence, self._passes, self._settings, duels, until)

    def _own_state(self) -> dict[str, Any]:
        now = self._passes.now[0]
        own = {
            "exploring": bool(now["exploring"]),
            "next_pair": int(now["next_pair"]),
            "waiting": self._passes.waiting[: now["n_waiting"]].tolist(),
            "joining": self._passes.joining.nonzero()[0].tolist(),
            "concluding": bool(now["concluding"]),
        }
        if self._settings.keeps:
            kept = [None if arm == NONE else arm for arm in self._passes.kept.tolist()]
            own["kept"] = kept if now["has_kept"] else None
        return own


@kernel
def run(
    arena: Arena,
    divergence: Divergence,
    passes: Passes,
    settings: Settings,
    duels: int,
    until: int,
) -> int:
    """The kernel: Algorithm 1 from after `duels` duels; see `CompiledCourse._run`."""
    now = passes.now[0]
    while duels < until and is_stocked(arena):
        t = duels + 1
        if now.concluding:
            conclude(divergence, passes, settings.slack, max(t - 1, 1))
        place = NONE
        if now.exploring:
            place = due(arena.wins, passes, needed(settings, t))
            now.exploring = place != NONE
            if place == NONE and settings.keeps and not now.has_kept:
                keep_opponents(arena, divergence, passes)
        if place != NONE:
            arm, opponent = passes.pairs[0, place], passes.pairs[1, place]
        else:
            now.concluding = True
            now.n_waiting -= 1
            arm = passes.waiting[now.n_waiting]
            passes.drawn[arm] = True  # L_R ← L_R \ {l(t)}
            opponent = choose_opponent(arena, divergence, passes, settings, arm, t)
        if arm == opponent:
            times = times_alone(divergence, passes, settings, arm, t, until - duels)
            arena.plays[arm, arm] += times
            duels += times
        else:
            fight(arena, arm, opponent)
            refresh(divergence, arena.wins, arm, opponent)
            duels += 1
    return duels


@compiled
def conclude(divergence: Divergence, passes: Passes, slack: float, t: int) -> None:
    """What follows the duel of step t: L_N grows, and perhaps the next pass begins."""
    sums, joining, drawn, now = divergence.sums, passes.joining, passes.drawn, passes.now[0]
    least, bound = least_of(sums), ln(t) + slack
    for arm in range(len(sums)):
        joining[arm] |= drawn[arm] & (sums[arm] - least <= bound)  # J_j(t)
    now.concluding = False
    if now.n_waiting > 0:
        return
    for place in range(len(sums) - 1, -1, -1):
        arm = passes.order[place]
        if joining[arm]:
            passes.waiting[now.n_waiting] = arm
            now.n_waiting += 1
        drawn[arm] = not joining[arm]
        joining[arm] = False
    now.exploring = True


@compiled
def needed(settings: Settings, t: int) -> int:
    """How often every pair must have met before the list goes on: L."""
    if settings.meetings > 0:
        return settings.meetings
    return max(1, ceil(settings.alpha * ln(ln(t)))) if t > 1 else 1


@compiled
def due(wins: Floats, passes: Passes, times: int) -> int:
    """The place of the next pair, in turn, that has met less often."""
    now, pairs = passes.now[0], passes.pairs
    if times <= now.explored:
        return NONE
    for _ in range(pairs.shape[1]):
        place = now.next_pair
        first, second = pairs[0, place], pairs[1, place]
        now.next_pair = (place + 1) % pairs.shape[1]
        if wins[first, second] + wins[second, first] < times:
            return int(place)
    now.explored = times
    return NONE


@compiled
def choose_opponent(
    arena: Arena, divergence: Divergence, passes: Passes, settings: Settings, arm: int, t: int
) -> int:
    """m(t), by Algorithm 2 or 3."""
    wins = arena.wins
    likeliest = one_of_least(arena, divergence.sums)  # i*(t)
    if settings.by_price:
        if settings.keeps:
            cheapest: int = passes.kept[arm]
            if cheapest != NONE and wins[arm, cheapest] > wins[cheapest, arm]:
                cheapest = NONE
        else:
            cheapest = cheapest_opponent(arena, divergence, passes, arm, likeliest)
        if cheapest != NONE:
            met = wins[arm, likeliest] + wins[likeliest, arm]
            if met >= (wins[arm, cheapest] + wins[cheapest, arm]) / ln(ln(t)):
                return cheapest
    return strongest_opponent(arena, passes.row, arm, likeliest)


@compiled
def strongest_opponent(arena: Arena, means: Floats, arm: int, likeliest: int) -> int:
    """Algorithm 2, given i*(t)."""
    wins = arena.wins
    if likeliest != arm and wins[arm, likeliest] <= wins[likeliest, arm]:  # i* in O
        return likeliest
    beaten = 0
    for other in range(len(means)):
        beaten += wins[arm, other] > wins[other, arm]
        means[other] = mean(wins[arm, other], wins[other, arm])
    if beaten == len(means) - 1:  # O is empty
        return likeliest
    means[arm] = 2.0
    return one_of_least(arena, means)


@compiled
def mean(won: float, lost: float) -> float:
    """The share of duels won; 1/2 if there were none."""
    return won / (won + lost) if won + lost > 0 else 0.5


@compiled
def cheapest_opponent(
    arena: Arena, divergence: Divergence, passes: Passes, arm: int, likeliest: int
) -> int:
    """b(l), equation (6), or NONE if nobody is ahead of l."""
    wins, terms, costs, lead = arena.wins, divergence.terms[arm], passes.row, passes.lead
    for other in range(len(terms)):
        lead[other] = mean(wins[likeliest, other], wins[other, likeliest]) - 0.5
    least, tied = np.inf, 0
    for other in range(len(terms)):
        costs[other] = np.inf
        if terms[other] > 0:
            met = wins[arm, other] + wins[other, arm]
            costs[other] = (lead[other] + lead[arm]) / (terms[other] / max(met, 1.0))
            if costs[other] < least:
                least, tied = costs[other], 0
            tied += costs[other] == least
    if tied == 0:
        return NONE
    n = below(arena, tied)
    for other in range(len(terms)):
        if costs[other] == least:
            if n == 0:
                return other
            n -= 1
    return NONE


@compiled
def keep_opponents(arena: Arena, divergence: Divergence, passes: Passes) -> None:
    """Fix b(l) for every arm."""
    likeliest = one_of_least(arena, divergence.sums)
    for arm in range(len(passes.kept)):
        passes.kept[arm] = cheapest_opponent(arena, divergence, passes, arm, likeliest)
    passes.now[0].has_kept = True


@compiled
def times_alone(
    divergence: Divergence, passes: Passes, settings: Settings, arm: int, t: int, most: int
) -> int:
    """How many times from step t on a sole arm meets itself; see `RMED1._times_alone`."""
    now, sums = passes.now[0], divergence.sums
    if now.n_waiting > 0:
        return 1
    least = np.inf
    for other in range(len(sums)):
        if passes.joining[other]:
            return 1
        if other != arm:
            least = min(least, sums[other] - sums[arm])
    few, many = 0, most  # steps after which it is not over yet, and after which it is
    while few < many:
        middle = (few + many) // 2
        step = t + middle
        if least <= ln(step) + settings.slack or needed(settings, step + 1) > now.explored:
            many = middle
        else:
            few = middle + 1
    return min(most, few + 1)
