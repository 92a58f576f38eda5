"""A policy whose outcomes come late, as from real users."""

from __future__ import annotations

from collections import deque

import numpy as np

from streamduel.policies import Policy
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Integers
from streamduel.simulation.course import Course
from streamduel.simulation.delay import Delay
from streamduel.simulation.environment import Environment


class DelayedCourse(Course):
    """Fights a duel each step, and tells the policy of it after a delay.

    The outcome of duel s with delay d is told after duel s + d has been fought, so d = 0 is no
    delay. Outcomes that become known at the same time are told in the order of their duels.

    Args:
        policy: from here on only the course may tell it outcomes.
        environment: from here on only the course may draw from it.
        delay: the distribution of delays.
        slate: how many duels the policy proposes at a time. With 1 it proposes naively, unaware of
            duels in flight; with more it knows of those of the same slate.
        seed: of the delays.

    Attributes:
        in_flight: duels fought whose outcomes are not known yet.

    >>> from streamduel import policies
    >>> from streamduel.simulation.delay import FixedDelay
    >>> from streamduel.simulation.environment import MatrixEnvironment
    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> policy = policies.create("rucb", n_arms=2, seed=7)
    >>> course = DelayedCourse(policy, environment, FixedDelay(20), slate=5, seed=7)
    >>> course.advance(1000)
    >>> course.in_flight, policy.duels
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
        self._plays: Integers = np.zeros((environment.n_arms,) * 2, dtype=np.int64)
        self.in_flight = 0

    @property
    def plays(self) -> Integers:  # noqa: D102 - inherited
        return self._plays.copy()

    def advance(self, until: int) -> None:  # noqa: D102 - inherited
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

    def champion(self) -> int:  # noqa: D102 - inherited
        return self._policy.champion()

    def policy(self) -> Policy:  # noqa: D102 - inherited
        return self._policy
