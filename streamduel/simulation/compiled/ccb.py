"""CCB, compiled: the steps of `streamduel.policies.ccb`."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.ccb import CCB
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arithmetic import ln, probe, step_of
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.copeland_bounds import (
    CopelandBounds,
    advance,
    copeland_bounds,
    refresh,
)
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.random_words import permute
from streamduel.simulation.compiled.state import (
    NONE,
    State,
    below,
    coin,
    duel,
    has_words,
    nth,
    number,
    one_of_largest,
)
from streamduel.simulation.environment import Environment


class Hypotheses(NamedTuple):
    """The attributes of `CCB`, by the same names; sets of arms are arrays of booleans.

    Attributes:
        open_pairs: i * K + j of the undecided pairs on the shortlists; the first `known.n_open`
            elements are in use.
        known: one record of the attributes that are single numbers: `losses`, `n_open`, `settled`,
            `at_rest`.
        row: a buffer for one row of bounds.
        order: a buffer for one permutation.
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


class CCBRun(CompiledRun):
    """A run of CCB; as in CCB, one step counts all duels of a sole winner with itself."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, CCB)
        n_arms, own = policy.n_arms, self._state["own"]
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
        bounds = copeland_bounds(self._wins)
        self._kernel, self._parts = run, (bounds, self._hypotheses, policy.alpha)

    @override
    def _words_per_step(self) -> int:
        n_arms = len(self._wins)
        return 6 + n_arms * n_arms  # line 9C may cut every shortlist, each by a permutation

    @override
    def _own_state(self) -> dict[str, Any]:
        return {
            "best": self._hypotheses.best.nonzero()[0].tolist(),
            "shortlists": [row.nonzero()[0].tolist() for row in self._hypotheses.shortlists],
            "losses": self._hypotheses.known["losses"].item(),
        }


@kernel
def run(
    state: State,
    bounds: CopelandBounds,
    hypotheses: Hypotheses,
    alpha: float,
    duels: int,
    until: int,
) -> int:
    """Algorithm 1 after `duels` duels; see `CompiledRun`."""
    n_arms = len(bounds.wins)
    known = hypotheses.known[0]
    while duels < until and has_words(state):
        t = duels + 1
        scale = alpha * ln(t)
        update(state, bounds, hypotheses, scale)
        if known.at_rest and number(hypotheses.optimists) == 1:
            champion = nth(hypotheses.optimists, 0)
            times = steps_without_turn(bounds.moment[0].next_turn, alpha, t, until - duels)
            state.plays[champion, champion] += times
            duels += times
            continue
        duels += 1
        if known.n_open > 0 and coin(state, 1, 4):  # line 10
            pair = hypotheses.open_pairs[below(state, known.n_open)]
            champion, challenger = pair // n_arms, pair % n_arms
        else:
            champion = draw_champion(state, hypotheses)
            challenger = strongest_against(state, bounds, hypotheses, champion, scale)
        if champion == challenger:
            state.plays[champion, champion] += 1
        else:
            duel(state, champion, challenger)  # line 14
            refresh(bounds, state.wins, champion, challenger)
    return duels


@compiled
def update(state: State, bounds: CopelandBounds, hypotheses: Hypotheses, scale: float) -> None:
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
    known.settled = update_hypotheses(state, bounds, hypotheses)
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
    """Whether all pairs of an arm are decided."""
    decided: int = bounds.wins[arm] + bounds.losses[arm]
    return decided == len(bounds.wins) - 1


@compiled
def update_hypotheses(state: State, bounds: CopelandBounds, hypotheses: Hypotheses) -> bool:
    """Line 9; returns whether repeating it would change nothing."""
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
            cut(state, shortlists[arm], known.losses + 1, hypotheses.order)
    return settled


@compiled
def remove(bounds: CopelandBounds, hypotheses: Hypotheses, arm: int) -> None:
    """Line 9B: an arm leaves B; the arms that surely beat it replace an unfit shortlist."""
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
    """Empty a shortlist."""
    for arm in range(len(shortlist)):
        shortlist[arm] = False


@compiled
def cut(state: State, shortlist: Booleans, size: int, order: Integers) -> None:
    """Line 9C: a shorter list is emptied, a longer one cut at random."""
    listed = number(shortlist)
    if listed < size:
        clear(shortlist)
    if listed <= size:
        return
    permute(order[:listed], state.words, state.taken)
    place = 0
    for arm in range(len(shortlist)):
        if shortlist[arm]:
            for dropped in range(size, listed):
                if order[dropped] == place:
                    shortlist[arm] = False
            place += 1


@compiled
def draw_champion(state: State, hypotheses: Hypotheses) -> int:
    """Lines 11 and 12: c."""
    arms, n_preferred = hypotheses.optimists, number(hypotheses.preferred)
    if 0 < n_preferred < number(arms) and coin(state, 2, 3):
        arms = hypotheses.preferred
    return nth(arms, below(state, number(arms)))


@compiled
def strongest_against(
    state: State, bounds: CopelandBounds, hypotheses: Hypotheses, champion: int, scale: float
) -> int:
    """Line 13: d."""
    if is_decided(bounds, champion):
        return champion
    row = hypotheses.row
    trials, means = bounds.trials[champion], bounds.means[champion]
    undecided, listed = bounds.undecided[champion], hypotheses.shortlists[champion]
    only_listed = hypotheses.open_lists[champion] and coin(state, 1, 2)
    for arm in range(len(row)):
        row[arm] = sqrt(scale / trials[arm]) + means[arm]
    for arm in range(len(row)):
        among = undecided[arm] and (listed[arm] or not only_listed)
        row[arm] = row[arm] if among else -1.0
    return one_of_largest(state, row, excluded=NONE)


@compiled
def steps_without_turn(next_turn: float, alpha: float, t: int, most: int) -> int:
    """The number of steps from t on, at most `most`, in which no bound crosses 1/2."""
    last, end = t, t + most
    guess = step_of(next_turn, alpha, end)
    while end - last > 1:
        step = probe(last, end, guess)
        if alpha * ln(step) < next_turn:
            last = step
        else:
            end = step
    return end - t
