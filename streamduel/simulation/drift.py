"""Users who change their minds at certain times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import numpy.typing as npt

from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import check
from streamduel.simulation.environment import MatrixEnvironment


class DriftingEnvironment(MatrixEnvironment):
    """Preferences that are one matrix up to a time, and another one from then on.

    The environment does not know what time it is: whoever advances a course in it stops at each of
    the `times` and calls `move_to`. Regret is counted against the truth of the moment.

    Args:
        preferences: the matrix at the beginning.
        changes: further matrices by the number of duels after which they hold, each from 1.
        ties: τ, as for `MatrixEnvironment`.
        seed: of the generator.

    Raises:
        PreferenceError: a matrix is none, or of another number of arms, or a time is below 1.

    Attributes:
        times: when there is a change, ascending.

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
        """Take the preferences that hold after t duels, for the duels to come.

        Args:
            t: from 0.
        """
        self.preferences[:] = self._stages[bisect_right(self.times, t)]
        self._set_thresholds()
