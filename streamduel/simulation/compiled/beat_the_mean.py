"""Beat the Mean, compiled: `streamduel.policies.beat_the_mean`, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamduel.policies import BeatTheMean, Policy
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arena import Arena, below, fight, is_stocked
from streamduel.simulation.compiled.choice import largest_of, least_of, nth, number, one_of_least
from streamduel.simulation.compiled.compiled_course import CompiledCourse
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.environment import Environment


class Turns(NamedTuple):
    """What Beat the Mean keeps, by the same names.

    Attributes:
        duels_in_turn: n_b; infinity for arms that have left.
        least_share: w_b / n_b, but infinity for arms without duels and for those that have left.
        most_share: w_b / n_b, but 0 for them.
    """

    working: Booleans
    asked_by: Integers
    won: Floats
    played: Floats
    wins_in_turn: Floats
    duels_in_turn: Floats
    least_share: Floats
    most_share: Floats


class BeatTheMeanCourse(CompiledCourse):
    """Beat the Mean's course."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, BeatTheMean)
        n_arms, own = policy.n_arms, self._state["own"]
        self._width = policy._width
        working = np.zeros(n_arms, dtype=np.bool_)
        working[own["working"]] = True
        self._turns = Turns(
            working=working,
            asked_by=np.array(own["asked_by"]),
            won=np.array(own["won"]),
            played=np.array(own["played"]),
            wins_in_turn=np.zeros(n_arms),
            duels_in_turn=np.zeros(n_arms),
            least_share=np.zeros(n_arms),
            most_share=np.zeros(n_arms),
        )
        self._is_summed_up = False

    def _draws_per_step(self) -> int:
        return 2 + len(self._wins)  # the arm in turn and its opponent, after many have left

    def _run(self, arena: Arena, duels: int, until: int) -> int:
        fresh, self._is_summed_up = not self._is_summed_up, True
        return run(arena, self._turns, self._width, fresh, duels, until)

    def _own_state(self) -> dict[str, Any]:
        return {
            "working": self._turns.working.nonzero()[0].tolist(),
            "asked_by": self._turns.asked_by.tolist(),
            "won": self._turns.won.tolist(),
            "played": self._turns.played.tolist(),
        }


@kernel
def run(arena: Arena, turns: Turns, width: float, fresh: bool, duels: int, until: int) -> int:
    """The kernel: Algorithm 1 from after `duels` duels; see `CompiledCourse._run`."""
    if fresh:
        sum_up(turns)
    left = number(turns.working)
    while duels < until and is_stocked(arena):
        left = remove_the_worst(arena, turns, width, left)
        if left == 1:
            only = nth(turns.working, 0)
            arena.plays[only, only] += until - duels
            return until
        arm = one_of_least(arena, turns.duels_in_turn)  # the arm in turn
        other = below(arena, left - 1)
        other += other >= number(turns.working[:arm])
        opponent = nth(turns.working, other)
        turns.asked_by[arm, opponent] = 1
        turns.asked_by[opponent, arm] = 0
        wins = fight(arena, arm, opponent)
        turns.won[arm, opponent] += wins
        turns.played[arm, opponent] += 1
        turns.wins_in_turn[arm] += wins
        turns.duels_in_turn[arm] += 1
        share(turns, arm)
        duels += 1
    return duels


@compiled
def remove_the_worst(arena: Arena, turns: Turns, width: float, left: int) -> int:
    """While the worst and the best arm are apart by both of their radii; how many are left."""
    while left > 1:
        least = least_of(turns.duels_in_turn)
        if least < 4 * width:  # shares are never more than 1 apart
            break
        apart = largest_of(turns.most_share) - least_of(turns.least_share)
        if apart * apart * least < 4 * width:
            break
        turns.working[one_of_least(arena, turns.least_share)] = False
        sum_up(turns)
        left -= 1
    return left


@compiled
def share(turns: Turns, arm: int) -> None:
    """Keep the share of wins of an arm."""
    wins, duels = turns.wins_in_turn[arm], turns.duels_in_turn[arm]
    turns.least_share[arm] = wins / duels if 0 < duels < np.inf else np.inf
    turns.most_share[arm] = wins / duels if 0 < duels < np.inf else 0.0


@compiled
def sum_up(turns: Turns) -> None:
    """w_b and n_b: wins and duels of each arm in its turn, against the arms that are left."""
    for arm in range(len(turns.working)):
        turns.wins_in_turn[arm] = 0.0
        turns.duels_in_turn[arm] = 0.0
        for opponent in range(len(turns.working)):
            if turns.working[opponent]:
                turns.wins_in_turn[arm] += turns.won[arm, opponent]
                turns.duels_in_turn[arm] += turns.played[arm, opponent]
        if not turns.working[arm]:
            turns.duels_in_turn[arm] = np.inf
        share(turns, arm)
