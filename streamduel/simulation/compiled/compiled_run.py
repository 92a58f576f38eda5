"""What all compiled runs share: random words, counts, and the policy's state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import inf
from typing import Any, Final

import numpy as np
from typing_extensions import override

from streamduel.errors import PreferenceError
from streamduel.policies import Policy
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats
from streamduel.simulation.compiled.random_words import rewind
from streamduel.simulation.compiled.state import State
from streamduel.simulation.environment import Environment, MatrixEnvironment
from streamduel.simulation.run import Run

_BLOCK: Final = 1 << 12
"""Words drawn together: few enough that rewinding most of them costs nothing."""

_MAX_WORDS: Final = 1 << 14
"""Per pair of arms: far more than any step takes; a step that needs more would never end."""

_REJECTIONS: Final = 16
"""Words a step may take beyond those it needs without rejections; 1 word in 2**58 is rejected."""


class CompiledRun(Run):
    """A run whose duels a kernel simulates.

    The kernel works on arrays made from the policy's state, and on words drawn ahead from the two
    generators. When it returns, both generators are rewound to the first word that was not taken.

    Args:
        policy: its state is copied; it may have observed duels.
        environment: a matrix that does not change.

    Raises:
        PreferenceError: the environment has another number of arms.
    """

    _environment: MatrixEnvironment
    _kernel: Callable[..., int]
    """Takes a `State`, the `_parts`, the number of duels so far, and how many there shall be; runs
    until then, or until its words run short, and returns the number of duels."""
    _parts: tuple[Any, ...]

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        if not isinstance(environment, MatrixEnvironment) or environment.n_arms != policy.n_arms:
            raise PreferenceError(
                f"a compiled run of {policy.n_arms} arms needs a matrix of as many arms."
            )
        self._state: Final = policy.state_dict()
        self._generator: Final = Generator.from_state(self._state["generator"])
        self._before = policy.duels
        self._wins: Floats = np.array(policy.wins)
        self._margin = self._words_per_step() + _REJECTIONS

    @property
    @override
    def wins(self) -> Floats:
        view = self._wins.view()
        view.flags.writeable = False
        return view

    @override
    def advance(self, until: int) -> None:
        n_words, n_outcomes = max(_BLOCK, 8 * self._margin), _BLOCK
        own, users = self._generator, self._environment.generator
        before = self._before
        planned = min(until, self._state["parameters"].get("horizon", inf) - before)
        while self.t < planned:
            state = State(
                wins=self._wins,
                plays=self._plays,
                win_below=self._environment.win_below,
                tie_below=self._environment.tie_below,
                words=own.words(n_words),
                taken=np.zeros(1, dtype=np.int64),
                outcome_words=users.words(n_outcomes),
                outcomes_taken=np.zeros(1, dtype=np.int64),
                margin=self._margin,
            )
            began = self.t
            duels = self._kernel(state, *self._parts, before + began, before + planned)
            self.t = duels - before
            rewind(own, n_words - state.taken.item())
            rewind(users, n_outcomes - state.outcomes_taken.item())
            if self.t == began:  # a step was undone for lack of words
                n_words *= 2
                assert n_words <= _MAX_WORDS * self._wins.size
        if self.t < until:  # after the horizon
            champion = self.champion()
            self._plays[champion, champion] += until - self.t
            self.t = until

    @abstractmethod
    def _words_per_step(self) -> int:
        """The most words of the policy's generator that a step takes if none is rejected."""

    def _own_state(self) -> dict[str, Any]:
        """The part `own` of the policy's state."""
        return {}

    @override
    def champion(self) -> int:
        return self.policy().champion()

    @override
    def policy(self) -> Policy:
        counts = {"duels": self._before + self.t, "wins": self._wins.tolist()}
        generator = self._generator.state_dict()
        own = self._own_state()
        return type(self._policy).from_state(
            {**self._state, "counts": counts, "generator": generator, "own": own}
        )
