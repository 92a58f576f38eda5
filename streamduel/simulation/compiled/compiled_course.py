"""What the courses of all compiled policies share: words, counts, and the way back to a policy."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from typing import Any, Final

import numpy as np

from streamduel.errors import PreferenceError
from streamduel.policies import Policy
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.compiled.arena import Arena
from streamduel.simulation.compiled.words import put_back
from streamduel.simulation.course import Course
from streamduel.simulation.environment import Environment, MatrixEnvironment

_BLOCK: Final = 1 << 12
"""So many words are drawn at once: few enough that putting most of them back costs nothing."""

_MOST_WORDS: Final = 1 << 14
"""For each pair of arms: far more than any step takes; whoever seems to want more never ends."""

_REJECTIONS: Final = 16
"""Words a step may take beyond those that it needs if none is rejected, which one in 2**58 is."""


class CompiledCourse(Course):
    """A course whose duels are fought by a kernel.

    The kernel works on arrays made from the policy's state, and on words drawn ahead of time from
    the two generators. Whenever it is done, what it did not take is put back, and both generators
    stand where they would if they had been asked word by word.

    Args:
        policy: its state is copied; it may have seen duels.
        environment: a matrix that does not change.

    Raises:
        PreferenceError: the environment has another number of arms.
    """

    _environment: MatrixEnvironment

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        if not isinstance(environment, MatrixEnvironment) or environment.n_arms != policy.n_arms:
            raise PreferenceError(
                f"a compiled course of {policy.n_arms} arms needs a matrix of as many arms."
            )
        self._state: Final = policy.state_dict()
        self._generator: Final = Generator.from_state(self._state["generator"])
        self._before = policy.duels
        self._wins: Floats = np.array(policy.wins)
        self._plays: Integers = np.zeros(self._wins.shape, dtype=np.int64)
        self._margin = self._draws_per_step() + _REJECTIONS

    @property
    def plays(self) -> Integers:  # noqa: D102 - inherited
        return self._plays.copy()

    def advance(self, until: int) -> None:  # noqa: D102 - inherited
        n_draws, n_outcomes = max(_BLOCK, 4 * self._margin), _BLOCK
        mine, theirs = self._generator, self._environment.generator
        before = self._before
        planned = max(before, min(before + until, self._state["parameters"].get("horizon", inf)))
        while before + self.t < planned:
            arena = Arena(
                wins=self._wins,
                plays=self._plays,
                win_below=self._environment.win_below,
                tie_below=self._environment.tie_below,
                draws=mine.words(n_draws),
                drawn=np.zeros(1, dtype=np.int64),
                outcomes=theirs.words(n_outcomes),
                fought=np.zeros(1, dtype=np.int64),
                margin=self._margin,
            )
            began, self.t = self.t, self._run(arena, before + self.t, planned) - before
            put_back(mine, n_draws - arena.drawn.item())
            put_back(theirs, n_outcomes - arena.fought.item())
            if self.t == began:  # a step was taken back, for want of words
                n_draws *= 2
                assert n_draws <= _MOST_WORDS * self._wins.size
        if self.t < until:  # beyond the horizon
            champion = self.champion()
            self._plays[champion, champion] += until - self.t
            self.t = until

    @abstractmethod
    def _draws_per_step(self) -> int:
        """How many words of the policy's generator a step takes at most, if none is rejected."""

    @abstractmethod
    def _run(self, arena: Arena, duels: int, until: int) -> int:
        """Let the kernel fight until there have been so many duels, or its words run short.

        Returns:
            How many duels there have been.
        """

    @abstractmethod
    def _own_state(self) -> dict[str, Any]:
        """What the policy's state holds in `own`."""

    def champion(self) -> int:  # noqa: D102 - inherited
        return self.policy().champion()

    def policy(self) -> Policy:  # noqa: D102 - inherited
        counts = {"duels": self._before + self.t, "wins": self._wins.tolist()}
        generator = self._generator.state_dict()
        own = self._own_state()
        return type(self._policy).from_state(
            {**self._state, "counts": counts, "generator": generator, "own": own}
        )
