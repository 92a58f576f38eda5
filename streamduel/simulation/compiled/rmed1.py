"""RMED1, compiled: the steps of `streamduel.policies.rmed1`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.rmed1 import RMED1
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.divergence import UNITS
from streamduel.preference.power import power
from streamduel.simulation.compiled.arithmetic import evidence, ln
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import (
    NONE,
    State,
    duel,
    has_words,
    least_of,
    one_of_least,
)
from streamduel.simulation.environment import Environment


class Divergence(NamedTuple):
    """The attributes of `EmpiricalDivergence`.

    Attributes:
        sums: (K,) I_i in nats.
        terms: (K, K).
        nats: (K,) the whole nats of each sum.
        units: (K,) its units besides, perhaps more than one nat has; both as one integer would
            exceed 64 bits.
    """

    sums: Floats
    terms: Floats
    nats: Integers
    units: Integers


class Passes(NamedTuple):
    """The attributes of `RMED1`, by the same names; sets of arms are arrays of booleans.

    Attributes:
        order: the arms in their fixed order.
        pairs: (2, K (K - 1) / 2) the pairs in their fixed order.
        waiting: L_R; the first `now.n_waiting` elements are in use, and the last of them is next.
        joining: L_N.
        drawn: all arms but L_R.
        row: a buffer for one number per arm.
        now: one record of the attributes that are single numbers.
    """

    order: Integers
    pairs: Integers
    waiting: Integers
    joining: Booleans
    drawn: Booleans
    row: Floats
    now: Any


_NOW: Final = np.dtype(
    [
        ("n_waiting", "i8"),
        ("next_pair", "i8"),
        ("explored", "?"),
        ("exploring", "?"),
        ("concluding", "?"),
    ]
)


class RMED1Run(CompiledRun):
    """A run of RMED1; like RMED1, the kernel counts the duels of a sole arm in one step."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, RMED1)
        own, n_arms = self._state["own"], policy.n_arms
        slack = policy.f_weight * float(power(n_arms, Fraction(101, 100)))
        divergence = Divergence(
            sums=np.zeros(n_arms),
            terms=np.zeros((n_arms, n_arms)),
            nats=np.zeros(n_arms, dtype=np.int64),
            units=np.zeros(n_arms, dtype=np.int64),
        )
        for first, second in np.argwhere(np.triu(self._wins + self._wins.T) > 0):
            refresh(divergence, self._wins, first, second)
        waiting = own["waiting"]
        order = np.array(self._state["priority"]).argsort()
        self._passes = Passes(
            order=order,
            pairs=order[np.stack(np.triu_indices(n_arms, k=1))],
            waiting=np.array([*waiting, *[NONE] * (n_arms - len(waiting))]),
            joining=np.zeros(n_arms, dtype=np.bool_),
            drawn=np.ones(n_arms, dtype=np.bool_),
            row=np.zeros(n_arms),
            now=np.zeros(1, dtype=_NOW),
        )
        self._passes.joining[own["joining"]] = True
        self._passes.drawn[waiting] = False
        now = self._passes.now
        now["n_waiting"], now["next_pair"] = len(waiting), own["next_pair"]
        now["exploring"], now["concluding"] = own["exploring"], own["concluding"]
        self._kernel, self._parts = run, (divergence, self._passes, slack)

    @override
    def _words_per_step(self) -> int:
        return 2  # i*, the opponent

    @override
    def _own_state(self) -> dict[str, Any]:
        now = self._passes.now[0]
        return {
            "exploring": bool(now["exploring"]),
            "next_pair": int(now["next_pair"]),
            "waiting": self._passes.waiting[: now["n_waiting"]].tolist(),
            "joining": self._passes.joining.nonzero()[0].tolist(),
            "concluding": bool(now["concluding"]),
        }


@kernel
def run(
    state: State, divergence: Divergence, passes: Passes, slack: float, duels: int, until: int
) -> int:
    """Algorithm 1 after `duels` duels; see `CompiledRun`."""
    now = passes.now[0]
    while duels < until and has_words(state):
        t = duels + 1
        if now.concluding:
            conclude(divergence, passes, slack, max(t - 1, 1))
        place = NONE
        if now.exploring:
            place = unseen_pair(state.wins, passes)
            now.exploring = place != NONE
        if place != NONE:
            arm, opponent = passes.pairs[0, place], passes.pairs[1, place]
        else:
            now.concluding = True
            now.n_waiting -= 1
            arm = passes.waiting[now.n_waiting]
            passes.drawn[arm] = True  # L_R ← L_R \ {l(t)}
            opponent = choose_opponent(state, divergence, passes.row, arm)
        if arm == opponent:
            times = times_alone(divergence, passes, slack, arm, t, until - duels)
            state.plays[arm, arm] += times
            duels += times
        else:
            duel(state, arm, opponent)
            refresh(divergence, state.wins, arm, opponent)
            duels += 1
    return duels


@compiled
def conclude(divergence: Divergence, passes: Passes, slack: float, t: int) -> None:
    """After the duel of step t: L_N grows; after the last of a pass, the next pass begins."""
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
def unseen_pair(wins: Floats, passes: Passes) -> int:
    """The index of the next pair without duels, or `NONE`."""
    now, pairs = passes.now[0], passes.pairs
    if now.explored:
        return NONE
    for _ in range(pairs.shape[1]):
        place = now.next_pair
        first, second = pairs[0, place], pairs[1, place]
        now.next_pair = (place + 1) % pairs.shape[1]
        if wins[first, second] + wins[second, first] < 1:
            return int(place)
    now.explored = True
    return NONE


@compiled
def choose_opponent(state: State, divergence: Divergence, means: Floats, arm: int) -> int:
    """m(t), by Algorithm 2."""
    wins = state.wins
    likeliest = one_of_least(state, divergence.sums)  # i*(t)
    if likeliest != arm and wins[arm, likeliest] <= wins[likeliest, arm]:  # i* in O
        return likeliest
    beaten = 0
    for other in range(len(means)):
        won, lost = wins[arm, other], wins[other, arm]
        beaten += won > lost
        means[other] = won / (won + lost) if won + lost > 0 else 0.5
    if beaten == len(means) - 1:  # O is empty
        return likeliest
    means[arm] = 2.0
    return one_of_least(state, means)


@compiled
def times_alone(
    divergence: Divergence, passes: Passes, slack: float, arm: int, t: int, most: int
) -> int:
    """The number of duels of a sole arm with itself from step t on; see `RMED1._duels_alone`."""
    now, sums = passes.now[0], divergence.sums
    if now.n_waiting > 0:
        return 1
    least = np.inf
    for other in range(len(sums)):
        if passes.joining[other]:
            return 1
        if other != arm:
            least = min(least, sums[other] - sums[arm])
    few, many = 0, most  # after so many steps the arm is still alone, and no longer
    while few < many:
        middle = (few + many) // 2
        if least <= ln(t + middle) + slack or not now.explored:
            many = middle
        else:
            few = middle + 1
    return min(most, few + 1)


@compiled
def refresh(divergence: Divergence, wins: Floats, first: int, second: int) -> None:
    """Update the divergences for one pair from its counts."""
    first_wins, second_wins = wins[first, second], wins[second, first]
    if first_wins < second_wins:
        set_term(divergence, first, second, evidence(first_wins, second_wins))
        set_term(divergence, second, first, 0.0)
    else:
        set_term(divergence, first, second, 0.0)
        set_term(divergence, second, first, evidence(second_wins, first_wins))


@compiled
def set_term(divergence: Divergence, arm: int, rival: int, term: float) -> None:
    """Set a term, and update the sum of the arm."""
    before = divergence.terms[arm, rival]
    if term == before:
        return
    divergence.terms[arm, rival] = term
    whole, whole_before = int(term), int(before)
    divergence.nats[arm] += whole - whole_before
    divergence.units[arm] += int((term - whole) * UNITS) - int((before - whole_before) * UNITS)
    carried, rest = divmod(divergence.units[arm], UNITS)
    # Two exact numbers: their sum is rounded once.
    divergence.sums[arm] = float(divergence.nats[arm] + carried) + rest / UNITS
