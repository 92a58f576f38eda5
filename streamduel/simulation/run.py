"""One run: a policy and an environment, duel by duel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

import numpy as np
from typing_extensions import override

from streamduel.policies import Duels, Policy
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.delay import Delay
from streamduel.simulation.environment import Environment

_MAX_FORESEEN: Final = 1 << 20
"""The most duels proposed ahead; their arrays take about 50 MB."""


class Run(ABC):
    """A policy in an environment, which can be advanced to any number of duels.

    Args:
        policy: must not observe outcomes from elsewhere after this.
        environment: must not be drawn from elsewhere after this.

    Attributes:
        t: duels so far, including those of an arm with itself.
    """

    t: int

    def __init__(self, policy: Policy, environment: Environment) -> None:
        self.t = 0
        self._policy = policy
        self._environment = environment
        self._plays: Integers = np.zeros((environment.n_arms,) * 2, dtype=np.int64)

    @property
    def plays(self) -> Integers:
        """(K, K), a new array: [i, j] is how often i was first and j second in a duel.

        The diagonal counts the duels of an arm with itself; the sum is `t`.
        """
        return self._plays.copy()

    @abstractmethod
    def advance(self, until: int) -> None:
        """Simulate duels until `t` is `until`; none if it is already."""

    @property
    def wins(self) -> Floats:
        """(K, K), read-only and live: [i, j] is how often i beat j in the outcomes observed."""
        return self._policy.wins

    def champion(self) -> int:
        """The arm that the policy would serve if exploration ended now."""
        return self._policy.champion()

    def policy(self) -> Policy:
        """The policy in its present state."""
        return self._policy


class SteppedRun(Run):
    """A run in Python: one duel after the other, or duels proposed ahead together.

    >>> from streamduel import policies
    >>> from streamduel.simulation.environment import MatrixEnvironment
    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> run = SteppedRun(policies.create("rucb", n_arms=2, seed=7), environment)
    >>> run.advance(10_000)
    >>> run.champion(), run.plays.tolist()
    (0, [[9921, 38], [41, 0]])
    """

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        self._single = [0] * self._plays.size  # plays besides; a list: faster for single counts

    @property
    @override
    def plays(self) -> Integers:
        return self._plays + np.array(self._single, dtype=np.int64).reshape(self._plays.shape)

    @override
    def advance(self, until: int) -> None:
        policy, n_arms, single = self._policy, self._environment.n_arms, self._single
        propose_ahead, observe = policy.propose_ahead, policy.observe
        outcome = self._environment.outcome
        t = self.t
        while t < until:
            pairs, count = propose_ahead(min(until - t, _MAX_FORESEEN))
            if len(count) > 1:
                t += self._advance_by(pairs, count)
                continue
            first: int = pairs.item(0)
            second: int = pairs.item(1)
            if first == second:
                times: int = count.item(0)
                observe(first, first, 0.5, times)
            else:
                times = 1
                observe(first, second, outcome(first, second))
            single[first * n_arms + second] += times
            t += times
        self.t = t

    def _advance_by(self, pairs: Integers, count: Integers) -> int:
        """Simulate a foreseen stretch of duels; returns how many."""
        first, second = pairs[:, 0], pairs[:, 1]
        outcomes = self._environment.outcomes(first, second)
        self._policy.learn(Duels(first, second, outcomes, count))
        # Sums of float64 are exact up to 2**53, far above what a policy may count.
        cells = np.bincount(first * len(self._plays) + second, count, self._plays.size)
        self._plays += cells.astype(np.int64).reshape(self._plays.shape)
        return int(count.sum())


class DelayedRun(Run):
    """A run with delayed outcomes.

    The outcome of duel s with delay d is observed after duel s + d, so d = 0 is no delay. Outcomes
    due at the same time are observed in the order of their duels.

    Args:
        policy: must not observe outcomes from elsewhere after this.
        environment: must not be drawn from elsewhere after this.
        delay: the distribution of delays.
        slate: duels that the policy proposes at a time. The policy knows of the duels in flight
            of the same slate, but not of those of earlier slates.
        seed: of the delays.

    Attributes:
        in_flight: duels whose outcomes have not been observed.

    >>> from streamduel import policies
    >>> from streamduel.simulation.delay import FixedDelay
    >>> from streamduel.simulation.environment import MatrixEnvironment
    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> policy = policies.create("rucb", n_arms=2, seed=7)
    >>> run = DelayedRun(policy, environment, FixedDelay(20), slate=5, seed=7)
    >>> run.advance(1000)
    >>> run.in_flight, policy.duels
    (20, 980)
    """

    def __init__(
        self, policy: Policy, environment: Environment, delay: Delay, *, slate: int = 1, seed: int
    ) -> None:
        super().__init__(policy, environment)
        self._delay = delay
        self._slate = slate
        self._generator = Generator(seed)
        self._proposed: deque[list[int]] = deque()
        self._due: dict[int, list[tuple[int, int, float]]] = {}
        self.in_flight = 0

    @override
    def advance(self, until: int) -> None:
        while self.t < until:
            if not self._proposed:
                self._proposed.extend(self._policy.propose(self._slate).tolist())
            first, second = self._proposed.popleft()
            self.t += 1
            self._plays[first, second] += 1
            self.in_flight += 1
            outcome = self._environment.outcome(first, second)
            due = self.t + self._delay.draw(self._generator)
            self._due.setdefault(due, []).append((first, second, outcome))
            for duel in self._due.pop(self.t, ()):
                self._policy.observe(*duel)
                self.in_flight -= 1
