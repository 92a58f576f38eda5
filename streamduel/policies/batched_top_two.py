"""Top-two Thompson sampling in batches."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.batch import Targets
from streamduel.policies.base.batched_policy import BatchedPolicy, BatchedState
from streamduel.policies.base.parameter import Whole
from streamduel.policies.top_two import TopTwo
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.logarithm import ln
from streamduel.preference.power import power

DRAWS: Final = 1024
"""The largest number of planning steps of a batch; they take some 50 ms. In a larger batch, one
step plans several duels."""

LEAST: Final = 20
"""A batch that is expected to give the answer early has at least a twentieth of its full size, so
that an answer that fails by a little does not take several small rounds."""


def _default_rounds(values: Mapping[str, Any]) -> int:
    """⌊2 ln T⌋, or 1 for a small T."""
    return max(1, int(2 * ln(values["horizon"])))


class BatchedTopTwoState(BatchedState):
    """The quotas of the open batch."""

    quotas: Targets


class BatchedTopTwo(BatchedPolicy):
    """Top-two sampling for services that can change pairs only some 10 to 50 times.

    A round plans its batch with `TopTwo` on a copy of the counts: each pair that it chooses counts
    as a duel with its expected outcome, and the next choice is made with these counts. So the plan
    continues with other pairs once the batch is expected to decide one, as single duels would. It
    ends when the answer is expected, or at the size of the round. How often each pair was chosen is
    its quota.

    Round 1 compares each pair ⌊T^(1/B)⌋ times. Each following one may add to the duels so far by
    the factor that would lead to T with round B, and the last one may take all that are left. When
    a round is complete, the answer of `TopTwo` with the counts of real duels ends exploration;
    after B rounds the champion is left.

    The answer is as sure as that of `TopTwo`: plans only steer choices, and expected outcomes are
    no evidence. The champion after B rounds without an answer is not sure.

    Draws from the generator: when a batch is planned, those of `TopTwo` for each of at most 1024
    steps; for each duel, one of those that the batch lacks.

    Args:
        rounds: B. ⌊2 ln T⌋ when left out, 23 for T = 10⁵.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = BatchedTopTwo(n_arms=3, seed=7, horizon=1000), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), policy.round, int(policy.wins.sum())
    (0, 1, 12, 125)

    Source: our own (docs/research); expected outcomes for what is in flight after T. Desautels,
    A. Krause and J. Burdick, "Parallelizing exploration-exploitation tradeoffs in Gaussian process
    bandit optimization", JMLR 15, 2014.
    """

    name = "batched_top_two"
    summary = "top_two in a few growing batches, planned with expected outcomes"
    paper = "our own, after Desautels et al., Parallelizing Exploration-Exploitation, 2014"
    settles_for_copeland = True

    state_type = BatchedTopTwoState

    rounds = Whole(
        symbol="B",
        at_least=1,
        derived=("⌊2 ln T⌋", _default_rounds),
        meaning="number of rounds; the number of duels grows by equal factors",
        reason="a batched policy needs at least one round",
    )
    confidence = TopTwo.confidence
    min_duels = TopTwo.min_duels

    def _begin(self) -> None:
        super()._begin()
        self._quotas: Integers = np.full((self.n_arms, self.n_arms), self._repeats(1))

    def _restored(self) -> None:
        super()._restored()
        if (self._quotas < 0).any() or (self._quotas != self._quotas.T).any():
            raise PolicyError("the quotas of a batch must be symmetric, and none below 0.")

    def _top_two(self) -> TopTwo:
        """`TopTwo` with a copy of the counts, and the generator of this policy."""
        policy = TopTwo(self.n_arms, confidence=self.confidence, min_duels=self.min_duels)
        state = policy.state_dict()
        state["counts"], state["priority"] = self._counts.state_dict(), self._priority.tolist()
        policy = TopTwo.from_state(state)
        policy._generator = self._generator
        return policy

    def _end_round(self) -> Booleans:
        """All arms but the winner, if there is a sure one."""
        policy = self._top_two()
        return np.arange(self.n_arms) != policy.champion() if policy.finished else ~self._active

    def _begin_round(self) -> Integers:
        """The quotas of a batch, planned with expected outcomes."""
        left, growth = self.horizon - self.duels, self._growth()
        # With the counts of former rounds, as after a change of arms, growth may be more.
        size = left if self._round == self.rounds else min(growth, left)
        step, planned = ceil(size / DRAWS), 0
        quotas = np.zeros((self.n_arms, self.n_arms), dtype=np.int64)
        policy = self._top_two()
        while planned < size and not policy.finished:
            first, second = policy.propose()[0].tolist()
            expected = policy.posterior.mean.item(second, first)
            policy._observe_one(first, second, expected, step)
            quotas[first, second] += step
            planned += step
        least = ceil(min(growth, size) / LEAST)
        if planned < least:
            # In steps, of which there are at most `DRAWS`: the product fits into int64.
            quotas = -(-(quotas // step) * least // (planned // step))
        self._quotas = quotas + quotas.T
        return self._quotas

    def _growth(self) -> int:
        """By how many duels a round adds to those so far: equal factors lead from round 1 to T."""
        pairs = self.n_arms * (self.n_arms - 1) // 2
        first = min(pairs * self._repeats(1), self.horizon)
        share = Fraction(1, max(self.rounds - 1, 1))
        factor = power(self.horizon, share) / power(first, share)
        return max(int(self.duels * (factor - 1)), self.n_arms)

    def _open_quotas(self) -> Integers:
        return self._quotas

    def candidates(self) -> int:
        """How many arms may be the winner."""
        return 1 if self._last is not None else self._top_two().candidates()
