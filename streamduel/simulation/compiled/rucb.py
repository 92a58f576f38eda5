"""RUCB, compiled: the steps of `streamduel.policies.rucb` and `streamduel.preference.bounds`."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.rucb import RUCB
from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.compiled.arithmetic import ln, probe, step_of
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import (
    NONE,
    State,
    below,
    coin,
    duel,
    has_words,
    one_of_largest,
)
from streamduel.simulation.environment import Environment


class Bounds(NamedTuple):
    """The attributes of `UpperBounds`, by the same names, and a buffer for one row of bounds."""

    means: Floats
    trials: Floats
    required: Floats
    hurdles: Floats
    row: Floats


class RUCBRun(CompiledRun):
    """A run of RUCB; as in RUCB, one step counts all duels of a champion with itself."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, RUCB)
        n_arms = policy.n_arms
        bounds = Bounds(
            means=np.full((n_arms, n_arms), 2.0),
            trials=np.full((n_arms, n_arms), np.inf),
            required=np.zeros((n_arms, n_arms)),
            hurdles=np.zeros(n_arms),
            row=np.empty(n_arms),
        )
        np.fill_diagonal(bounds.means, 0.5)
        for first, second in np.argwhere(self._wins > 0):
            refresh(bounds, self._wins, first, second)
        hypothesis = self._state["own"]["hypothesis"]
        self._hypothesis = np.array([NONE if hypothesis is None else hypothesis])
        self._kernel = run
        self._parts = bounds, policy.alpha, policy.champion_set, self._hypothesis

    @override
    def _words_per_step(self) -> int:
        return 3  # a coin, c and d

    @override
    def _own_state(self) -> dict[str, Any]:
        hypothesis = self._hypothesis.item()
        return {"hypothesis": None if hypothesis == NONE else hypothesis}


@kernel
def run(
    state: State,
    bounds: Bounds,
    alpha: float,
    champion_set: bool,
    hypothesis: Integers,
    duels: int,
    until: int,
) -> int:
    """Algorithm 1 after `duels` duels; see `CompiledRun`."""
    while duels < until and has_words(state):
        t = duels + 1
        scale = alpha * ln(t)  # lines 3 and 4
        if champion_set:
            champion = champion_by_hypothesis(state, bounds.hurdles, scale, hypothesis)
        else:
            champion = any_possible_winner(state, bounds.hurdles, scale)
        challenger = strongest_against(state, bounds, champion, scale)
        if champion == challenger:
            times = times_alone(bounds, alpha, champion, t, until - duels)
            state.plays[champion, champion] += times
            duels += times
            continue
        duel(state, champion, challenger)  # line 7
        refresh(bounds, state.wins, champion, challenger)
        duels += 1
    return duels


@compiled
def any_possible_winner(state: State, hurdles: Floats, scale: float) -> int:
    """Line 5: c, from the arms whose hurdles `scale` has reached, or from all."""
    possible = 0
    for arm in range(len(hurdles)):
        possible += hurdles[arm] <= scale
    if possible == 0:
        return below(state, len(hurdles))
    return nth_possible_winner(hurdles, scale, below(state, possible), NONE)


@compiled
def nth_possible_winner(hurdles: Floats, scale: float, n: int, without: int) -> int:
    """The candidate with n candidates before it, where the arm `without` is none."""
    for arm in range(len(hurdles)):
        if hurdles[arm] <= scale and arm != without:
            if n == 0:
                return arm
            n -= 1
    return NONE


@compiled
def champion_by_hypothesis(
    state: State, hurdles: Floats, scale: float, hypothesis: Integers
) -> int:
    """Lines 5 to 9 of the proceedings' version: c from B."""
    possible = 0
    for arm in range(len(hurdles)):
        possible += hurdles[arm] <= scale
    if possible == 0:
        hypothesis[0] = NONE
        return below(state, len(hurdles))
    if possible == 1:
        only = nth_possible_winner(hurdles, scale, 0, NONE)
        hypothesis[0] = only
        return only
    kept: int = hypothesis[0]
    if kept != NONE and hurdles[kept] > scale:
        kept = NONE
        hypothesis[0] = NONE
    if kept == NONE:
        return nth_possible_winner(hurdles, scale, below(state, possible), NONE)
    if coin(state, 1, 2):
        return kept
    return nth_possible_winner(hurdles, scale, below(state, possible - 1), kept)


@compiled
def strongest_against(state: State, bounds: Bounds, champion: int, scale: float) -> int:
    """Line 6: d, the arm with the largest bound against c; in a tie, not c itself."""
    row = bounds.row
    trials, means = bounds.trials[champion], bounds.means[champion]
    for arm in range(len(row)):
        row[arm] = sqrt(scale / trials[arm]) + means[arm]
    return one_of_largest(state, row, excluded=champion)


@compiled
def times_alone(bounds: Bounds, alpha: float, arm: int, t: int, most: int) -> int:
    """The number of duels of c with itself from step t on; see `RUCB._duels_alone`."""
    last, end = t, t + most
    if not is_alone(bounds, arm, alpha * ln(last)):
        return 1
    challenge = np.inf
    for rival in range(len(bounds.hurdles)):
        if rival != arm:
            challenge = min(challenge, bounds.required[rival, arm])
    guess = step_of(challenge, alpha, end)
    while end - last > 1:
        step = probe(last, end, guess)
        if is_alone(bounds, arm, alpha * ln(step)):
            last = step
        else:
            end = step
    return end - t


@compiled
def is_alone(bounds: Bounds, arm: int, scale: float) -> bool:
    """Whether lines 5 and 6 can only choose c and c; see `UpperBounds.rules_out_all_but`."""
    if bounds.hurdles[arm] > scale:
        return False
    for rival in range(len(bounds.hurdles)):
        if rival != arm:
            bound = sqrt(scale / bounds.trials[arm, rival]) + bounds.means[arm, rival]
            if bound >= 0.5 or bounds.hurdles[rival] <= scale:
                return False
    return True


@compiled
def refresh(bounds: Bounds, wins: Floats, first: int, second: int) -> None:
    """Update the bounds of one pair from its counts."""
    played = wins[first, second] + wins[second, first]
    set_mean(bounds, first, second, wins[first, second] / played, played)
    set_mean(bounds, second, first, wins[second, first] / played, played)


@compiled
def set_mean(bounds: Bounds, arm: int, rival: int, mean: float, trials: float) -> None:
    """Set an arm's mean against a rival, and update the arm's hurdle."""
    bounds.means[rival, arm] = mean
    bounds.trials[rival, arm] = trials
    gap = 0.5 - mean
    required = trials * (gap * gap) if gap > 0 else 0.0
    before = bounds.required[arm, rival]
    bounds.required[arm, rival] = required
    if required >= bounds.hurdles[arm]:
        bounds.hurdles[arm] = required
    elif before == bounds.hurdles[arm]:  # the largest has shrunk
        largest = 0.0
        for other in range(len(bounds.hurdles)):
            largest = max(largest, bounds.required[arm, other])
        bounds.hurdles[arm] = largest
