"""One policy on its way through one environment, duel by duel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Final

import numpy as np

from streamduel.policies import Duels, Policy
from streamduel.preference.arrays import Integers
from streamduel.simulation.environment import Environment, MatrixEnvironment

_STRETCH: Final = 1 << 20
"""As many duels are foreseen at once at most: their arrays take some 50 MB then."""


class Course(ABC):
    """A policy that fights its duels in an environment, up to any time and then on from there.

    Args:
        policy: from here on only the course may tell it outcomes.
        environment: from here on only the course may draw from it.

    Attributes:
        t: duels so far, those of an arm with itself included.
    """

    t: int

    def __init__(self, policy: Policy, environment: Environment) -> None:
        self.t = 0
        self._policy = policy
        self._environment = environment

    @property
    @abstractmethod
    def plays(self) -> Integers:
        """(K, K), a new array: [i, j] is how often i was first and j second in a duel.

        The diagonal counts the duels of an arm with itself; all together they are `t`.
        """

    @abstractmethod
    def advance(self, until: int) -> None:
        """Fight duels until there have been this many; none if there have been already.

        Args:
            until: the `t` to stop at, exactly.
        """

    @abstractmethod
    def champion(self) -> int:
        """The arm that the policy would serve if exploration ended now."""

    @abstractmethod
    def policy(self) -> Policy:
        """The policy in its present state."""


class SteppedCourse(Course):
    """Asks the policy and tells it, one duel or one foreseeable stretch after the other.

    >>> from streamduel import policies
    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> course = SteppedCourse(policies.create("rucb", n_arms=2, seed=7), environment)
    >>> course.advance(10_000)
    >>> course.champion(), course.plays.tolist()
    (0, [[9921, 38], [41, 0]])
    """

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        n_arms = environment.n_arms
        self._single = [0] * (n_arms * n_arms)  # plain integers: quicker to count one by one
        self._bulk: Integers = np.zeros(n_arms * n_arms, dtype=np.int64)

    @property
    def plays(self) -> Integers:  # noqa: D102 - inherited
        n_arms = self._environment.n_arms
        return (np.array(self._single, dtype=np.int64) + self._bulk).reshape(n_arms, n_arms)

    def advance(self, until: int) -> None:  # noqa: D102 - inherited
        policy, n_arms, single = self._policy, self._environment.n_arms, self._single
        foresee, observe, outcome = policy.foresee, policy.observe, self._environment.outcome
        t = self.t
        while t < until:
            pairs, count = foresee(min(until - t, _STRETCH))
            if len(count) > 1:
                t += self._fight(pairs, count)
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

    def _fight(self, pairs: Integers, count: Integers) -> int:
        """Fight a stretch of many duels at once; returns how many."""
        first, second = pairs[:, 0], pairs[:, 1]
        outcomes = self._environment.outcomes(first, second)
        self._policy.learn(Duels(first, second, outcomes, count))
        # Sums of float64 are exact up to 2**53, far above what a policy may count.
        cells = np.bincount(first * self._environment.n_arms + second, count, len(self._bulk))
        self._bulk += cells.astype(np.int64)
        return int(count.sum())

    def champion(self) -> int:  # noqa: D102 - inherited
        return self._policy.champion()

    def policy(self) -> Policy:  # noqa: D102 - inherited
        return self._policy


def course(policy: Policy, environment: Environment, *, compiled: bool = True) -> Course:
    """A course by the quickest way there is; which way it is changes no result.

    Args:
        policy: a policy that has seen nothing.
        environment: where it will fight.
        compiled: whether a compiled course may be taken. It is, if numba is installed, there is
            one for this policy, and the environment is a matrix that never changes; but none of
            them forgets, as a policy with a window does.

    >>> from streamduel import policies
    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> way = course(policies.create("rucb", n_arms=2, seed=7), environment, compiled=False)
    >>> type(way).__name__
    'SteppedCourse'
    """
    forgets = policy.parameters.get("window") is not None
    quick = compiled_course(policy.name) if compiled and not forgets else None
    if quick is not None and type(environment) is MatrixEnvironment:
        return quick(policy, environment)
    return SteppedCourse(policy, environment)


def compiled_course(name: str) -> type[Course] | None:
    """The compiled course of a policy, or None if there is none, or nothing to compile it with.

    Args:
        name: the policy's.
    """
    try:
        found = import_module("streamduel.simulation.compiled").find(name)
    except ImportError:  # numba is an optional extra
        return None
    is_course = isinstance(found, type) and issubclass(found, Course)
    return found if is_course else None
