"""D-TS and D-TS+, compiled: `streamduel.policies.double_thompson`, step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamduel.policies import DoubleThompson, DoubleThompsonPlus, Policy
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arena import Arena, below, fight, is_stocked
from streamduel.simulation.compiled.beta import Posterior, better, posterior, sample
from streamduel.simulation.compiled.beta import refresh as refresh_posterior
from streamduel.simulation.compiled.choice import NONE, nth, number, one_of_largest
from streamduel.simulation.compiled.compiled_course import CompiledCourse
from streamduel.simulation.compiled.copeland_bounds import (
    CopelandBounds,
    advance,
    copeland_bounds,
)
from streamduel.simulation.compiled.copeland_bounds import refresh as refresh_bounds
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.logarithm import ln
from streamduel.simulation.environment import Environment


class Samples(NamedTuple):
    """What a step of D-TS works with, by the names in `DoubleThompson`.

    Attributes:
        standing: the order of arms that was drawn once.
        beats: how many arms each arm beats in the counts.
        best: the arms with the best score, in the order in which they had their turn.
        theta: the first sample, for D-TS+: [i, j] is θ_ij, NaN if not drawn.
        row: room for one number for each arm.
    """

    standing: Integers
    beats: Integers
    likely: Booleans
    waiting: Booleans
    unknown: Booleans
    scores: Integers
    best: Integers
    theta: Floats
    row: Floats


class DoubleThompsonCourse(CompiledCourse):
    """The course of both."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, DoubleThompson)
        n_arms = policy.n_arms
        self._alpha = policy.alpha
        self._plus = isinstance(policy, DoubleThompsonPlus)
        self._bounds = copeland_bounds(self._wins)
        self._posterior = posterior(self._wins)
        self._samples = Samples(
            standing=np.array(self._state["standing"]),
            beats=np.count_nonzero(self._wins > self._wins.T, axis=1),
            likely=np.zeros(n_arms, dtype=np.bool_),
            waiting=np.zeros(n_arms, dtype=np.bool_),
            unknown=np.zeros(n_arms, dtype=np.bool_),
            scores=np.zeros(n_arms, dtype=np.int64),
            best=np.zeros(n_arms, dtype=np.int64),
            theta=np.zeros((n_arms, n_arms)),
            row=np.zeros(n_arms),
        )

    def _draws_per_step(self) -> int:
        # Seldom as many: the first sample of all pairs, and a second of K - 1. There is no most,
        # and a step that runs out of words is taken back.
        n_arms = len(self._wins)
        return 100 + 16 * n_arms + 2 * n_arms * n_arms

    def _run(self, arena: Arena, duels: int, until: int) -> int:
        return run(
            arena,
            self._bounds,
            self._posterior,
            self._samples,
            self._alpha,
            self._plus,
            duels,
            until,
        )

    def _own_state(self) -> dict[str, Any]:
        return {}


@kernel
def run(
    arena: Arena,
    bounds: CopelandBounds,
    posterior: Posterior,
    samples: Samples,
    alpha: float,
    plus: bool,
    duels: int,
    until: int,
) -> int:
    """The kernel: Algorithm 1 from after `duels` duels; see `CompiledCourse._run`."""
    while duels < until and is_stocked(arena):
        before = arena.drawn[0]
        advance(bounds, alpha * ln(duels + 1))
        champion = choose_champion(arena, bounds, posterior, samples, plus)
        challenger = choose_challenger(arena, bounds, posterior, samples.row, champion)
        if arena.drawn[0] > len(arena.draws):
            arena.drawn[0] = before
            return duels
        duels += 1
        if champion == challenger:
            arena.plays[champion, champion] += 1
            continue
        count(arena.wins, samples.beats, champion, challenger, -1)
        fight(arena, champion, challenger)
        count(arena.wins, samples.beats, champion, challenger, 1)
        refresh_bounds(bounds, arena.wins, champion, challenger)
        refresh_posterior(posterior, arena.wins, champion, challenger)
    return duels


@compiled
def count(wins: Floats, beats: Integers, first: int, second: int, change: int) -> None:
    """Add to, or take from, the number of arms that the leader of a pair beats."""
    if wins[first, second] > wins[second, first]:
        beats[first] += change
    elif wins[second, first] > wins[first, second]:
        beats[second] += change


@compiled
def choose_champion(
    arena: Arena, bounds: CopelandBounds, posterior: Posterior, samples: Samples, plus: bool
) -> int:
    """The arm of C that beats the most arms in the first sample."""
    likely, losses = samples.likely, bounds.losses
    fewest = losses[0]
    for arm in range(len(losses)):
        fewest = min(fewest, losses[arm])
    for arm in range(len(losses)):
        likely[arm] = losses[arm] == fewest
    if number(likely) == 1:
        return nth(likely, 0)
    for arm in range(len(losses)):
        samples.waiting[arm] = likely[arm]
        samples.unknown[arm] = True
        samples.scores[arm] = len(losses) - 1
        if plus:
            for rival in range(len(losses)):
                samples.theta[arm, rival] = np.nan
    learn_few(arena, posterior, samples, plus)
    n_best = have_turns(arena, posterior, samples, plus)
    if n_best == 1:
        return int(samples.best[0])
    if plus:
        learn_rest(arena, posterior, samples)
        n_best = cheapest_of(samples, n_best)
    return int(samples.best[below_or_zero(arena, n_best)])


@compiled
def below_or_zero(arena: Arena, n: int) -> int:
    """An integer from 0 to n - 1; 0 if no word is left, and then the step will be taken back."""
    return below(arena, n) if arena.drawn[0] < len(arena.draws) else 0


@compiled
def learn_few(arena: Arena, posterior: Posterior, samples: Samples, plus: bool) -> None:
    """Draw θ_ij > 1/2 of all pairs with few duels and an arm of C."""
    n_arms, n_pairs = len(samples.likely), 0
    for first in range(n_arms):
        for second in range(first + 1, n_arms):
            touching = samples.likely[first] or samples.likely[second]
            if touching and posterior.few[first, second]:
                posterior.first[n_pairs] = first
                posterior.second[n_pairs] = second
                n_pairs += 1
    if plus:
        sample(arena, posterior, arena.wins, n_pairs)
    else:
        better(arena, posterior, n_pairs)
    learn(posterior, samples, plus, n_pairs)


@compiled
def learn_rest(arena: Arena, posterior: Posterior, samples: Samples) -> None:
    """Draw what is missing of the first sample."""
    n_arms, n_pairs = len(samples.likely), 0
    for first in range(n_arms):
        for second in range(first + 1, n_arms):
            if np.isnan(samples.theta[first, second]):
                posterior.first[n_pairs] = first
                posterior.second[n_pairs] = second
                n_pairs += 1
    sample(arena, posterior, arena.wins, n_pairs)
    learn(posterior, samples, True, n_pairs)


@compiled
def learn(posterior: Posterior, samples: Samples, plus: bool, n_pairs: int) -> None:
    """Count who is beaten in what was drawn of so many pairs, and for D-TS+ keep it."""
    for place in range(n_pairs):
        first, second = posterior.first[place], posterior.second[place]
        chance = posterior.chances[place]
        samples.scores[second if chance > 0.5 else first] -= 1
        if plus:
            samples.theta[first, second] = chance
            samples.theta[second, first] = 1 - chance


@compiled
def have_turns(arena: Arena, posterior: Posterior, samples: Samples, plus: bool) -> int:
    """Arm after arm, draw what is not known yet, until nobody can be better; how many are best."""
    waiting, unknown, scores, best = samples.waiting, samples.unknown, samples.scores, samples.best
    n_arms, n_best = len(waiting), 0
    while True:
        arm, highest = NONE, 0
        for one in range(n_arms):
            rank = (scores[one] * n_arms + samples.beats[one]) * n_arms + samples.standing[one] + 1
            if waiting[one] and rank > highest:
                arm, highest = one, rank
        if arm == NONE or (n_best > 0 and scores[arm] < scores[best[0]]):
            return n_best
        waiting[arm] = False
        unknown[arm] = False
        n_pairs = 0
        for rival in range(n_arms):
            if posterior.many[arm, rival] and unknown[rival]:
                posterior.first[n_pairs] = arm
                posterior.second[n_pairs] = rival
                n_pairs += 1
        sample(arena, posterior, arena.wins, n_pairs)
        learn(posterior, samples, plus, n_pairs)
        if n_best == 0 or scores[arm] > scores[best[0]]:
            best[0] = arm
            n_best = 1
        elif scores[arm] == scores[best[0]]:
            best[n_best] = arm
            n_best += 1


@compiled
def cheapest_of(samples: Samples, n_best: int) -> int:
    """Keep those of the best arms that have the least R; how many they are."""
    best, costs = samples.best, samples.row
    least, n_cheapest = np.inf, 0
    for place in range(n_best):
        costs[place] = cost(samples, best[place])
        least = min(least, costs[place])
    for place in range(n_best):
        if costs[place] == least:
            best[n_cheapest] = best[place]
            n_cheapest += 1
    return n_cheapest


@compiled
def cost(samples: Samples, arm: int) -> float:
    """R_i of an arm i, added up in the order of the arms."""
    scores, total, most = samples.scores, 0.0, 0
    for rival in range(len(scores)):
        most = max(most, scores[rival])
    for rival in range(len(scores)):
        p = samples.theta[arm, rival] if rival != arm else 0.5
        information = p * ln(p / 0.5) + (1 - p) * ln((1 - p) / 0.5)
        if information > 0:
            total += (2 * most - scores[arm] - scores[rival]) / information
    return total


@compiled
def choose_challenger(
    arena: Arena, bounds: CopelandBounds, posterior: Posterior, chances: Floats, champion: int
) -> int:
    """The arm with the best chance against c in the second sample."""
    n_pairs = 0
    for rival in range(len(chances)):
        if rival != champion and not bounds.beats[rival, champion]:  # l_jc ≤ 1/2
            posterior.first[n_pairs] = rival
            posterior.second[n_pairs] = champion
            n_pairs += 1
        chances[rival] = 0.0
    sample(arena, posterior, arena.wins, n_pairs)
    for place in range(n_pairs):
        chances[posterior.first[place]] = posterior.chances[place]
    chances[champion] = 0.5
    if arena.drawn[0] >= len(arena.draws):
        arena.drawn[0] = len(arena.draws) + 1  # to be taken back
        return champion
    return one_of_largest(arena, chances, passed=NONE)
