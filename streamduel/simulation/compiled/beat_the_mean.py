"""Beat the Mean, compiled: the steps of `streamduel.policies.beat_the_mean`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.beat_the_mean import BeatTheMean
from streamduel.preference.arrays import Booleans, Floats
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import (
    State,
    below,
    duel,
    has_words,
    least_of,
    nth,
    number,
    one_of_least,
)
from streamduel.simulation.environment import Environment


class Turns(NamedTuple):
    """The attributes of `BeatTheMean`, by the same names, and the shares of wins.

    Attributes:
        duels_in_turn: (K,) n_b; infinity for eliminated arms.
        shares: (K,) w_b / n_b; infinity for eliminated arms, nan for arms without duels.
        extremes: the largest and the least share of the arms that are left; nan if not known.
    """

    working: Booleans
    asked_by: Booleans
    won: Floats
    played: Floats
    wins_in_turn: Floats
    duels_in_turn: Floats
    shares: Floats
    extremes: Floats


class BeatTheMeanRun(CompiledRun):
    """A run of Beat the Mean; one step counts all duels of the last arm with itself."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, BeatTheMean)
        n_arms, own = policy.n_arms, self._state["own"]
        self._turns = Turns(
            working=np.zeros(n_arms, dtype=np.bool_),
            asked_by=np.zeros((n_arms, n_arms), dtype=np.bool_),
            won=np.array(own["won"]),
            played=np.array(own["played"]),
            wins_in_turn=np.zeros(n_arms),
            duels_in_turn=np.zeros(n_arms),
            shares=np.zeros(n_arms),
            extremes=np.full(2, np.nan),
        )
        self._turns.working[own["working"]] = True
        for arm, opponents in enumerate(own["asked_by"]):
            self._turns.asked_by[arm, opponents] = True
        self._kernel, self._parts = run, (self._turns, policy.width)

    @override
    def _words_per_step(self) -> int:
        return 2 + len(self._wins)  # the arm in turn and its opponent, after many eliminations

    @override
    def _own_state(self) -> dict[str, Any]:
        return {
            "working": self._turns.working.nonzero()[0].tolist(),
            "asked_by": [row.nonzero()[0].tolist() for row in self._turns.asked_by],
            "won": self._turns.won.tolist(),
            "played": self._turns.played.tolist(),
        }


@kernel
def run(state: State, turns: Turns, width: float, duels: int, until: int) -> int:
    """Algorithm 1 after `duels` duels; see `CompiledRun`."""
    sum_up(turns)
    left = number(turns.working)
    while duels < until and has_words(state):
        left = eliminate(state, turns, width, left)
        if left == 1:
            champion = nth(turns.working, 0)
            state.plays[champion, champion] += until - duels
            return until
        arm = one_of_least(state, turns.duels_in_turn)  # the arm in turn
        other = below(state, left - 1)
        other += other >= number(turns.working[:arm])
        opponent = nth(turns.working, other)
        turns.asked_by[arm, opponent] = True
        turns.asked_by[opponent, arm] = False
        wins = duel(state, arm, opponent)
        turns.won[arm, opponent] += wins
        turns.played[arm, opponent] += 1
        turns.wins_in_turn[arm] += wins
        turns.duels_in_turn[arm] += 1
        set_share(turns, arm, turns.wins_in_turn[arm] / turns.duels_in_turn[arm])
        duels += 1
    return duels


@compiled
def eliminate(state: State, turns: Turns, width: float, left: int) -> int:
    """Eliminate the worst arms, as `BeatTheMean._eliminate` does.

    Returns:
        The number of arms left.
    """
    while left > 1:
        fewest = least_of(turns.duels_in_turn)
        if fewest < 4 * width:  # shares differ by at most 1
            break
        if np.isnan(turns.extremes[0]):
            best = 0.0
            for arm in range(len(turns.working)):
                if turns.working[arm]:
                    best = max(best, turns.shares[arm])
            turns.extremes[0], turns.extremes[1] = best, least_of(turns.shares)
        difference = turns.extremes[0] - turns.extremes[1]
        if difference * difference * fewest < 4 * width:
            break
        turns.working[one_of_least(state, turns.shares)] = False
        sum_up(turns)
        left -= 1
    return left


@compiled
def set_share(turns: Turns, arm: int, share: float) -> None:
    """Set the share of an arm; the extremes are no longer known if it was one of them."""
    extremes, before = turns.extremes, turns.shares[arm]
    turns.shares[arm] = share
    if before == extremes[0] or before == extremes[1]:
        extremes[0] = np.nan
    else:  # as long as they are not known, neither comparison is true
        extremes[0] = max(extremes[0], share)
        extremes[1] = min(extremes[1], share)


@compiled
def sum_up(turns: Turns) -> None:
    """w_b and n_b: wins and duels of each arm in its turn, against the arms that are left."""
    turns.extremes[0] = np.nan
    for arm in range(len(turns.working)):
        wins, duels = 0.0, 0.0
        for opponent in range(len(turns.working)):
            if turns.working[opponent]:
                wins += turns.won[arm, opponent]
                duels += turns.played[arm, opponent]
        is_left = turns.working[arm]
        turns.wins_in_turn[arm] = wins
        turns.duels_in_turn[arm] = duels if is_left else np.inf
        turns.shares[arm] = wins / duels if is_left else np.inf
