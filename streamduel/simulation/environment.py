"""Where simulated duels are fought: two arms go in, and who won comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
import numpy.typing as npt

from streamduel.errors import PreferenceError
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.matrix import check

FINENESS: Final = 1 << 53
"""Into so many equal parts a draw divides [0, 1); every such part is a float64."""


class Environment(ABC):
    """Users who judge duels of K arms.

    Attributes:
        n_arms: K.
        preferences: (K, K), [i, j] the probability that i beats j, 1/2 where neither is better;
            what a tie counts for, each environment says.
    """

    n_arms: int
    preferences: Floats

    @abstractmethod
    def outcome(self, first: int, second: int) -> float:
        """Who wins one duel.

        Args:
            first: an arm.
            second: an arm, perhaps the same.

        Returns:
            1.0 when the first wins, 0.0 when the second does, 0.5 for a tie.
        """

    def outcomes(self, first: Integers, second: Integers) -> Floats:
        """Who wins m duels, fought one after the other.

        Args:
            first: (m,) arms.
            second: (m,) arms.

        Returns:
            (m,) of 1, 0, or 0.5 for a tie: the same as `outcome` for one after the other.
        """
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        return np.array([self.outcome(*pair) for pair in pairs], dtype=np.float64)


class MatrixEnvironment(Environment):
    """Users whose preferences are known: the outcome of a duel depends on its two arms alone.

    A duel of two different arms takes exactly one 64-bit word w of the generator. With u = w >> 11,
    uniform below 2**53, the first arm wins if u < win_below[first, second], else it is a tie if
    u < tie_below[first, second], else the second arm wins. A duel of an arm with itself takes no
    word and is a tie. So equal seeds and equal duels give equal outcomes, one by one or at once,
    interpreted or compiled, on every machine.

    Args:
        preferences: (K, K), [i, j] the probability that i beats j when one of them wins.
        ties: τ, the probability that nobody wins a duel of two different arms; the first then wins
            with probability (1 - τ) p, and the second with (1 - τ) (1 - p).
        seed: of the generator, an integer from 0.

    Raises:
        PreferenceError: the matrix is none, or τ is no probability.

    Attributes:
        preferences: as given: of the duels that somebody wins, whatever τ. With ties as half a win,
            i would beat j with probability 1/2 + (1 - τ) (p_ij - 1/2).
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
        """Fill the thresholds, in place, from the preferences of the moment."""
        decided = (1 - self.ties) * FINENESS
        self.win_below[:] = np.rint(decided * self.preferences).astype(np.int64)
        # From the other end, so that an arm that always wins does so to the last part.
        lost = np.rint(decided * (1 - self.preferences)).astype(np.int64)
        self.tie_below[:] = np.maximum(self.win_below, FINENESS - lost)
        if self.ties == 0:
            self.tie_below[:] = self.win_below
        # Plain integers, for one duel after the other.
        self._win_below: list[list[int]] = self.win_below.tolist()
        self._tie_below: list[list[int]] = self.tie_below.tolist()

    def outcome(self, first: int, second: int) -> float:  # noqa: D102 - inherited
        if first == second:
            return 0.5
        u = self.generator.below(FINENESS)  # a power of two: this is one word's upper 53 bits
        if u < self._win_below[first][second]:
            return 1.0
        return 0.5 if u < self._tie_below[first][second] else 0.0

    def outcomes(self, first: Integers, second: Integers) -> Floats:  # noqa: D102 - inherited
        apart = first != second
        words = self.generator.words(int(np.count_nonzero(apart)))
        u = (words >> np.uint64(11)).astype(np.int64)
        pairs = first[apart], second[apart]
        result = np.full(len(first), 0.5)
        result[apart] = np.where(u < self.win_below[pairs], 1.0, 0.5)
        result[apart] -= np.where(u < self.tie_below[pairs], 0.0, 0.5)
        return result


def checked_ties(ties: object) -> float:
    """τ as a float, or why it is no probability."""
    is_number = isinstance(ties, int | float | np.number) and not isinstance(ties, bool)
    if not is_number or not 0 <= float(ties) <= 1:  # type: ignore[arg-type]
        raise PreferenceError(f"the probability of a tie must be from 0 to 1 (found {ties!r}).")
    return float(ties)  # type: ignore[arg-type]
