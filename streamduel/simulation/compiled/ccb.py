"""CCB, compiled: `streamduel.policies.ccb`, step by step."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from streamduel.policies import CCB, Policy
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arena import Arena, below, coin, fight, is_stocked
from streamduel.simulation.compiled.choice import NONE, nth, number, one_of_largest
from streamduel.simulation.compiled.compiled_course import CompiledCourse
from streamduel.simulation.compiled.copeland_bounds import (
    CopelandBounds,
    advance,
    copeland_bounds,
    refresh,
)
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.leap import probe, step_of
from streamduel.simulation.compiled.logarithm import ln
from streamduel.simulation.compiled.words import permute
from streamduel.simulation.environment import Environment


class Hypotheses(NamedTuple):
    """What CCB keeps, by the same names; arms as marks instead of lists.

    Attributes:
        open_pairs: i * K + j of the pairs on the shortlists that are open; of them, the first
            `known.n_open` count.
        known: one record of what is a single number there: `losses`, `n_open`, `settled`,
            `at_rest`.
        row: room for one row of bounds.
        order: room for one permutation.
    """

    best: Booleans
    shortlists: Booleans
    optimists: Booleans
    preferred: Booleans
    open_pairs: Integers
    open_lists: Booleans
    known: Any
    row: Floats
    order: Integers


class CCBCourse(CompiledCourse):
    """CCB's course; its kernel leaps over the duels of a sole winner with itself as CCB does."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, CCB)
        n_arms, own = policy.n_arms, self._state["own"]
        self._alpha = policy.alpha
        self._bounds = copeland_bounds(self._wins)
        self._hypotheses = Hypotheses(
            best=np.zeros(n_arms, dtype=np.bool_),
            shortlists=np.zeros((n_arms, n_arms), dtype=np.bool_),
            optimists=np.zeros(n_arms, dtype=np.bool_),
            preferred=np.zeros(n_arms, dtype=np.bool_),
            open_pairs=np.zeros(n_arms * n_arms, dtype=np.int64),
            open_lists=np.zeros(n_arms, dtype=np.bool_),
            known=np.zeros(
                1, dtype=[("losses", "i8"), ("n_open", "i8"), ("settled", "?"), ("at_rest", "?")]
            ),
            row=np.zeros(n_arms),
            order=np.zeros(n_arms, dtype=np.int64),
        )
        self._hypotheses.best[own["best"]] = True
        for arm, listed in enumerate(own["shortlists"]):
            self._hypotheses.shortlists[arm, listed] = True
        self._hypotheses.known["losses"] = own["losses"]

    def _draws_per_step(self) -> int:
        n_arms = len(self._wins)
        return 6 + n_arms * n_arms  # line 9C may cut every shortlist, each by a permutation

    def _run(self, arena: Arena, duels: int, until: int) -> int:
        return run(arena, self._bounds, self._hypotheses, self._alpha, duels, until)

    def _own_state(self) -> dict[str, Any]:
        return {
            "best": self._hypotheses.best.nonzero()[0].tolist(),
            "shortlists": [row.nonzero()[0].tolist() for row in self._hypotheses.shortlists],
            "losses": self._hypotheses.known["losses"].item(),
        }


@kernel
def run(
    arena: Arena,
    bounds: CopelandBounds,
    hypotheses: Hypotheses,
    alpha: float,
    duels: int,
    until: int,
) -> int:
    """The kernel: Algorithm 1 from after `duels` duels; see `CompiledCourse._run`."""
    n_arms = len(bounds.wins)
    known = hypotheses.known[0]
    while duels < until and is_stocked(arena):
        t = duels + 1
        scale = alpha * ln(t)
        look(arena, bounds, hypotheses, scale)
        if known.at_rest and number(hypotheses.optimists) == 1:
            champion = nth(hypotheses.optimists, 0)
            times = steps_without_turn(bounds.moment[0].next_turn, alpha, t, until - duels)
            arena.plays[champion, champion] += times
            duels += times
            continue
        duels += 1
        if known.n_open > 0 and coin(arena, 1, 4):  # line 10
            pair = hypotheses.open_pairs[below(arena, known.n_open)]
            champion, challenger = pair // n_arms, pair % n_arms
        else:
            champion = draw_champion(arena, hypotheses)
            challenger = strongest_against(arena, bounds, hypotheses, champion, scale)
        if champion == challenger:
            arena.plays[champion, champion] += 1
        else:
            fight(arena, champion, challenger)  # line 14
            refresh(bounds, arena.wins, champion, challenger)
    return duels


@compiled
def look(arena: Arena, bounds: CopelandBounds, hypotheses: Hypotheses, scale: float) -> None:
    """Lines 6 to 9, which change nothing while no bound crosses 1/2."""
    advance(bounds, scale)  # lines 6 and 7
    known = hypotheses.known[0]
    if known.settled and not bounds.moment[0].turned:
        return
    bounds.moment[0].turned = False
    n_arms = len(bounds.wins)
    fewest = bounds.losses[0]
    for arm in range(n_arms):
        fewest = min(fewest, bounds.losses[arm])
    for arm in range(n_arms):
        hypotheses.optimists[arm] = bounds.losses[arm] == fewest  # line 8
    known.settled = update_hypotheses(arena, bounds, hypotheses)
    known.n_open, in_question = 0, False
    for arm in range(n_arms):
        hypotheses.preferred[arm] = hypotheses.optimists[arm] and hypotheses.best[arm]
        open_before = known.n_open
        for other in range(n_arms):
            if hypotheses.shortlists[arm, other] and bounds.undecided[arm, other]:
                hypotheses.open_pairs[known.n_open] = arm * n_arms + other
                known.n_open += 1
        hypotheses.open_lists[arm] = known.n_open > open_before
        in_question |= hypotheses.optimists[arm] and not is_decided(bounds, arm)
    known.at_rest = known.settled and not in_question and known.n_open == 0


@compiled
def is_decided(bounds: CopelandBounds, arm: int) -> bool:
    """Whether it is known of all other arms if this arm beats them."""
    decided: int = bounds.wins[arm] + bounds.losses[arm]
    return decided == len(bounds.wins) - 1


@compiled
def update_hypotheses(arena: Arena, bounds: CopelandBounds, hypotheses: Hypotheses) -> bool:
    """Line 9; whether to do it again would change nothing."""
    best, shortlists, known = hypotheses.best, hypotheses.shortlists, hypotheses.known[0]
    n_arms = len(best)
    # A. Reset disproven hypotheses.
    disproven = 0
    for arm in range(n_arms):
        for other in range(n_arms):
            disproven += shortlists[arm, other] & bounds.beats[arm, other]
    if disproven:
        reset(hypotheses)
    # B. Remove non-Copeland winners.
    most = 0
    for arm in range(n_arms):
        most = max(most, bounds.wins[arm])
    for arm in range(n_arms):
        if best[arm] and n_arms - 1 - bounds.losses[arm] < most:
            remove(bounds, hypotheses, arm)
    settled = number(best) > 0
    if not settled:
        reset(hypotheses)
    # C. Add Copeland winners.
    proven = NONE
    for arm in range(n_arms):
        if hypotheses.optimists[arm] and is_decided(bounds, arm):
            proven = arm
            best[arm] = True
            clear(shortlists[arm])
    if proven != NONE:
        known.losses = bounds.losses[proven]
        for arm in range(n_arms):
            cut(arena, shortlists[arm], known.losses + 1, hypotheses.order)
    return settled


@compiled
def remove(bounds: CopelandBounds, hypotheses: Hypotheses, arm: int) -> None:
    """Line 9B: an arm leaves B; those who surely beat it are its shortlist, if that is no good."""
    hypotheses.best[arm] = False
    shortlist = hypotheses.shortlists[arm]
    if number(shortlist) != hypotheses.known[0].losses + 1:
        for other in range(len(shortlist)):
            shortlist[other] = bounds.beats[other, arm]


@compiled
def reset(hypotheses: Hypotheses) -> None:
    """Lines 2 to 4."""
    for arm in range(len(hypotheses.best)):
        hypotheses.best[arm] = True
        clear(hypotheses.shortlists[arm])
    hypotheses.known[0].losses = len(hypotheses.best)


@compiled
def clear(shortlist: Booleans) -> None:
    """Empty it."""
    for arm in range(len(shortlist)):
        shortlist[arm] = False


@compiled
def cut(arena: Arena, shortlist: Booleans, size: int, order: Integers) -> None:
    """Line 9C: a shorter list is emptied, a longer one cut at random."""
    listed = number(shortlist)
    if listed < size:
        clear(shortlist)
    if listed <= size:
        return
    permute(order[:listed], arena.draws, arena.drawn)
    place = 0
    for arm in range(len(shortlist)):
        if shortlist[arm]:
            for dropped in range(size, listed):
                if order[dropped] == place:
                    shortlist[arm] = False
            place += 1


@compiled
def draw_champion(arena: Arena, hypotheses: Hypotheses) -> int:
    """Lines 11 and 12: c."""
    arms, n_preferred = hypotheses.optimists, number(hypotheses.preferred)
    if 0 < n_preferred < number(arms) and coin(arena, 2, 3):
        arms = hypotheses.preferred
    return nth(arms, below(arena, number(arms)))


@compiled
def strongest_against(
    arena: Arena, bounds: CopelandBounds, hypotheses: Hypotheses, champion: int, scale: float
) -> int:
    """Line 13: d."""
    if is_decided(bounds, champion):
        return champion
    row = hypotheses.row
    trials, means = bounds.trials[champion], bounds.means[champion]
    undecided, listed = bounds.undecided[champion], hypotheses.shortlists[champion]
    only_listed = hypotheses.open_lists[champion] and coin(arena, 1, 2)
    for arm in range(len(row)):
        row[arm] = sqrt(scale / trials[arm]) + means[arm]
    for arm in range(len(row)):
        among = undecided[arm] and (listed[arm] or not only_listed)
        row[arm] = row[arm] if among else -1.0
    return one_of_largest(arena, row, passed=NONE)


@compiled
def steps_without_turn(next_turn: float, alpha: float, t: int, most: int) -> int:
    """How many steps in a row, from t on and at most `most`, no bound crosses 1/2."""
    last, end = t, t + most
    guess = step_of(next_turn, alpha, end)
    while end - last > 1:
        step = probe(last, end, guess)
        if alpha * ln(step) < next_turn:
            last = step
        else:
            end = step
    return end - t
