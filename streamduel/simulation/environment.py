"""Environments: they decide who wins a simulated duel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from streamduel.errors import PreferenceError
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.matrix import check

RESOLUTION: Final = 1 << 53
"""The parts into which a draw divides [0, 1); the bound of each is a float64."""


class Environment(ABC):
    """Users who judge duels of K arms.

    Attributes:
        n_arms: K.
        preferences: (K, K), [i, j] the probability that i beats j, 1/2 where neither is better;
            each environment defines how ties count.
    """

    n_arms: int
    preferences: Floats

    @abstractmethod
    def outcome(self, first: int, second: int) -> float:
        """The outcome of one duel, perhaps of an arm with itself.

        Returns:
            1.0 when the first wins, 0.0 when the second does, 0.5 for a tie.
        """

    def outcomes(self, first: Integers, second: Integers) -> Floats:
        """(m,) the outcomes of m duels; the same as m calls of `outcome`."""
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return np.array([self.outcome(*pair) for pair in pairs], dtype=np.float64)


class MatrixEnvironment(Environment):
    """An environment with known preferences: the outcome depends on the two arms only.

    A duel of two different arms draws one 64-bit word w. With u = w >> 11, uniform below 2**53, the
    first arm wins if u < win_below[first, second]; else it is a tie if u < tie_below[first,
    second]; else the second arm wins. A duel of an arm with itself is a tie and draws nothing.
    Equal seeds and equal duels therefore give equal outcomes, one by one or at once, in Python or
    compiled, on every machine.

    Args:
        preferences: (K, K), [i, j] the probability that arm i beats arm j in a duel without a tie.
        ties: τ, the probability of a tie in a duel of two different arms; the first then wins with
            probability (1 - τ) p, and the second with (1 - τ) (1 - p).
        seed: of the generator, an integer from 0.

    Raises:
        PreferenceError: the matrix is not a preference matrix, or τ is not a probability.

    Attributes:
        preferences: of the duels that are not ties, whatever τ. With a tie as half a win, i beats
            j with probability 1/2 + (1 - τ) (p_ij - 1/2).
        ties: τ.
        win_below: (K, K) thresholds from 0 to 2**53.
        tie_below: (K, K) thresholds from `win_below` to 2**53.
        generator: of all outcomes.

    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], ties=0.1, seed=7)
    >>> first, second = np.zeros(1000, dtype=np.int64), np.ones(1000, dtype=np.int64)
    >>> np.unique(environment.outcomes(first, second), return_counts=True)[1].tolist()
    [267, 97, 636]
    """

    def __init__(self, preferences: npt.ArrayLike, *, ties: float = 0.0, seed: int) -> None:
        self.ties = checked_ties(ties)
        self.generator = Generator(seed)
        self.preferences = check(preferences)
        self.n_arms = len(self.preferences)
        shape = self.preferences.shape
        self.win_below: Integers = np.empty(shape, dtype=np.int64)
        self.tie_below: Integers = np.empty(shape, dtype=np.int64)
        self._set_thresholds()

    def _set_thresholds(self) -> None:
        """Compute the thresholds, in place, from the present preferences."""
        decided = (1 - self.ties) * RESOLUTION
        self.win_below[:] = np.rint(decided * self.preferences).astype(np.int64)
        # From the other end, so that an arm with probability 1 always wins.
        lost = np.rint(decided * (1 - self.preferences)).astype(np.int64)
        self.tie_below[:] = np.maximum(self.win_below, RESOLUTION - lost)
        if self.ties == 0:
            self.tie_below[:] = self.win_below
        # Lists are faster for single duels.
        self._win_below: list[list[int]] = self.win_below.tolist()
        self._tie_below: list[list[int]] = self.tie_below.tolist()

    @override
    def outcome(self, first: int, second: int) -> float:
        if first == second:
            return 0.5
        u = self.generator.below(RESOLUTION)  # a power of two: the upper 53 bits of one word
        if u < self._win_below[first][second]:
            return 1.0
        return 0.5 if u < self._tie_below[first][second] else 0.0

    @override
    def outcomes(self, first: Integers, second: Integers) -> Floats:
        apart = first != second
        pairs = first * self.n_arms + second
        if apart.all():
            return self._outcomes_apart(pairs)
        result = np.full(len(first), 0.5)
        result[apart] = self._outcomes_apart(pairs[apart])
        return result

    def _outcomes_apart(self, pairs: Integers) -> Floats:
        """The outcomes of duels of different arms, i K + j of each."""
        u = (self.generator.words(len(pairs)) >> np.uint64(11)).view(np.int64)
        won = (u < self.win_below.take(pairs)).astype(np.float64)
        if self.ties:
            won += u < self.tie_below.take(pairs)
            won /= 2
        return won


class DriftingEnvironment(MatrixEnvironment):
    """An environment whose preferences change at given times.

    The environment does not count duels: the caller that advances a run must stop at each of the
    `times` and call `move_to`.

    Args:
        preferences: the matrix at the beginning.
        changes: further matrices by the number of duels after which they hold, each from 1.
        ties: τ, as for `MatrixEnvironment`.
        seed: of the generator.

    Raises:
        PreferenceError: a matrix is not a preference matrix or has another number of arms, or a
            time is below 1.

    Attributes:
        times: of the changes, ascending.

    >>> swapped = [[0.5, 0.2], [0.8, 0.5]]
    >>> environment = DriftingEnvironment([[0.5, 0.7], [0.3, 0.5]], {1000: swapped}, seed=7)
    >>> environment.move_to(1000)
    >>> environment.preferences.tolist()
    [[0.5, 0.2], [0.8, 0.5]]
    """

    def __init__(
        self,
        preferences: npt.ArrayLike,
        changes: Mapping[int, npt.ArrayLike],
        *,
        ties: float = 0.0,
        seed: int,
    ) -> None:
        super().__init__(preferences, ties=ties, seed=seed)
        self.times = sorted(changes)
        self._stages: list[Floats] = [self.preferences.copy()]
        for time in self.times:
            stage = check(changes[time], f"The preference matrix from {time} on")
            if time < 1 or stage.shape != self.preferences.shape:
                raise PreferenceError(
                    f"a change must come after at least 1 duel and be of {self.n_arms} arms"
                    f" (found one after {time} of {len(stage)})."
                )
            self._stages.append(stage)

    def move_to(self, t: int) -> None:
        """Use the preferences that hold after t duels, for the duels that follow."""
        self.preferences[:] = self._stages[bisect_right(self.times, t)]
        self._set_thresholds()


def checked_ties(ties: object) -> float:
    """τ as a float; a PreferenceError if it is not a probability."""
    is_number = isinstance(ties, int | float | np.number) and not isinstance(ties, bool)
    if not is_number or not 0 <= float(ties) <= 1:  # type: ignore[arg-type]
        raise PreferenceError(f"the probability of a tie must be from 0 to 1 (found {ties!r}).")
    return float(ties)  # type: ignore[arg-type]
