"""D-TS, compiled: the steps of `streamduel.policies.double_thompson`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.double_thompson import DoubleThompson
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled import beta_posterior
from streamduel.simulation.compiled.arithmetic import ln
from streamduel.simulation.compiled.beta_posterior import Posterior, posterior, sample
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.copeland_bounds import (
    CopelandBounds,
    advance,
    copeland_bounds,
    refresh,
)
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import (
    NONE,
    State,
    below,
    duel,
    has_words,
    nth,
    number,
    one_of_largest,
)
from streamduel.simulation.environment import Environment

_refresh_posterior = beta_posterior.refresh


class Samples(NamedTuple):
    """The variables of a step of `DoubleThompson`, by the same names.

    Attributes:
        priority: the order of arms, drawn once.
        beats: the number of arms that each arm beats in the counts.
        best: the arms with the best score so far, in the order in which they were sampled.
        row: a buffer for one number per arm.
    """

    priority: Integers
    beats: Integers
    likely: Booleans
    waiting: Booleans
    unknown: Booleans
    scores: Integers
    best: Integers
    row: Floats


class DoubleThompsonRun(CompiledRun):
    """A run of D-TS."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, DoubleThompson)
        n_arms = policy.n_arms
        bounds, beliefs = copeland_bounds(self._wins), posterior(self._wins)
        samples = Samples(
            priority=np.array(self._state["priority"]),
            beats=np.count_nonzero(self._wins > self._wins.T, axis=1),
            likely=np.zeros(n_arms, dtype=np.bool_),
            waiting=np.zeros(n_arms, dtype=np.bool_),
            unknown=np.zeros(n_arms, dtype=np.bool_),
            scores=np.zeros(n_arms, dtype=np.int64),
            best=np.zeros(n_arms, dtype=np.int64),
            row=np.zeros(n_arms),
        )
        self._kernel, self._parts = run, (bounds, beliefs, samples, policy.alpha)

    @override
    def _words_per_step(self) -> int:
        # Enough for nearly every step: the first sample of all pairs, and a second of K - 1. There
        # is no maximum; a step that runs out of words is undone.
        n_arms = len(self._wins)
        return 100 + 16 * n_arms + 2 * n_arms * n_arms


@kernel
def run(
    state: State,
    bounds: CopelandBounds,
    posterior: Posterior,
    samples: Samples,
    alpha: float,
    duels: int,
    until: int,
) -> int:
    """Algorithm 1 after `duels` duels; see `CompiledRun`."""
    while duels < until and has_words(state):
        before = state.taken[0]
        advance(bounds, alpha * ln(duels + 1))
        champion = choose_champion(state, bounds, posterior, samples)
        challenger = choose_challenger(state, bounds, posterior, samples.row, champion)
        if state.taken[0] > len(state.words):
            state.taken[0] = before
            return duels
        duels += 1
        if champion == challenger:
            state.plays[champion, champion] += 1
            continue
        count(state.wins, samples.beats, champion, challenger, -1)
        duel(state, champion, challenger)
        count(state.wins, samples.beats, champion, challenger, 1)
        refresh(bounds, state.wins, champion, challenger)
        _refresh_posterior(posterior, state.wins, champion, challenger)
    return duels


@compiled
def count(wins: Floats, beats: Integers, first: int, second: int, change: int) -> None:
    """Add to the number of arms that the arm ahead in a pair beats."""
    if wins[first, second] > wins[second, first]:
        beats[first] += change
    elif wins[second, first] > wins[first, second]:
        beats[second] += change


@compiled
def choose_champion(
    state: State, bounds: CopelandBounds, posterior: Posterior, samples: Samples
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
    sample_few(state, posterior, samples)
    n_best = sample_arms(state, posterior, samples)
    if n_best == 1:
        return int(samples.best[0])
    if state.taken[0] >= len(state.words):  # the step will be undone
        return int(samples.best[0])
    return int(samples.best[below(state, n_best)])


@compiled
def sample_few(state: State, posterior: Posterior, samples: Samples) -> None:
    """Draw θ_ij > 1/2 of all pairs with few duels and an arm of C."""
    n_arms, taken, likely, scores = (
        len(samples.likely),
        state.taken[0],
        samples.likely,
        samples.scores,
    )
    for first in range(n_arms):  # a step has enough words for all pairs; see `_words_per_step`
        lost = 0
        for second in range(first + 1, n_arms):
            if posterior.few[first, second] and (likely[first] or likely[second]):
                better = state.words[taken] < posterior.below[first, second]
                taken += 1
                scores[second] -= better
                lost += not better
        scores[first] -= lost
    state.taken[0] = taken


@compiled
def count_losses(posterior: Posterior, samples: Samples, n_pairs: int) -> None:
    """Subtract from the scores the losses in the sample of the first `n_pairs` pairs."""
    for place in range(n_pairs):
        beaten = posterior.second if posterior.chances[place] > 0.5 else posterior.first
        samples.scores[beaten[place]] -= 1


@compiled
def sample_arms(state: State, posterior: Posterior, samples: Samples) -> int:
    """Sample arm after arm until no other arm can be better; returns how many are best."""
    waiting, unknown, scores, best = samples.waiting, samples.unknown, samples.scores, samples.best
    n_arms, n_best = len(waiting), 0
    while True:
        arm, highest = NONE, 0
        for one in range(n_arms):
            rank = (scores[one] * n_arms + samples.beats[one]) * n_arms + samples.priority[one] + 1
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
        sample(state, posterior, state.wins, n_pairs)
        count_losses(posterior, samples, n_pairs)
        if n_best == 0 or scores[arm] > scores[best[0]]:
            best[0] = arm
            n_best = 1
        elif scores[arm] == scores[best[0]]:
            best[n_best] = arm
            n_best += 1


@compiled
def choose_challenger(
    state: State, bounds: CopelandBounds, posterior: Posterior, chances: Floats, champion: int
) -> int:
    """The arm with the largest chance against c in the second sample."""
    n_pairs = 0
    for rival in range(len(chances)):
        if rival != champion and not bounds.beats[rival, champion]:  # l_jc ≤ 1/2
            posterior.first[n_pairs] = rival
            posterior.second[n_pairs] = champion
            n_pairs += 1
        chances[rival] = 0.0
    sample(state, posterior, state.wins, n_pairs)
    for place in range(n_pairs):
        chances[posterior.first[place]] = posterior.chances[place]
    chances[champion] = 0.5
    if state.taken[0] >= len(state.words):
        state.taken[0] = len(state.words) + 1  # the step will be undone
        return champion
    return one_of_largest(state, chances, excluded=NONE)
