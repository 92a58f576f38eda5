"""How often each arm has beaten each other arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from streamduel.errors import PolicyError
from streamduel.preference.arrays import Floats, Integers

_Number = TypeVar("_Number", np.float64, np.int64)

MAX_DUELS: Final = 2**51
"""As many duels as are counted exactly: half a duel more still changes a float64 of this size."""


class WinCounts:
    """The wins of K arms over each other, exactly, whatever the order in which they arrive.

    A tie is half a win each way, so all counts are multiples of 1/2, and their sums in float64 have
    no rounding error up to `MAX_DUELS`: any order of the same duels gives equal bytes. A duel of
    an arm with itself counts as a duel and as nobody's win; the diagonal stays 0.

    How many arms each arm beats (has won more than half of its duels against) is kept along the
    way, because a policy asks for its champion after every duel.

    Nothing is checked here: `Policy.observe` is where duels from outside come in.

    Args:
        n_arms: K.

    Attributes:
        duels: all duels so far, those of an arm with itself included.
        wins: (K, K), read-only and live: [i, j] is how often i has beaten j.
        beats: (K,), read-only and live: how many arms each arm beats.
        turns: grows whenever `beats` may have changed, which is seldom: what follows from `beats`
            alone need be found only once per turn.

    >>> counts = WinCounts(3)
    >>> counts.add_one(0, 1, first_wins=1)
    >>> counts.add_one(2, 1, first_wins=0.5, count=3)
    >>> counts.wins.tolist(), counts.beats.tolist(), counts.duels
    ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.5], [0.0, 1.5, 0.0]], [1, 0, 0], 4)
    """

    __slots__ = ("_beats", "_wins", "_wins_over_itself", "beats", "duels", "turns", "wins")

    def __init__(self, n_arms: int) -> None:
        self._wins: Floats = np.zeros((n_arms, n_arms))
        self._wins_over_itself = self._wins.reshape(-1)[:: n_arms + 1]  # the diagonal, a view
        self._beats: Integers = np.zeros(n_arms, dtype=np.int64)
        self.duels = 0
        self.turns = 0
        self.wins = _read_only(self._wins)
        self.beats = _read_only(self._beats)

    @property
    def plays(self) -> Floats:
        """(K, K): how often each pair has been compared, W + Wᵀ, a new array."""
        return self._wins + self._wins.T

    def add_one(self, first: int, second: int, first_wins: float, count: int = 1) -> None:
        """Count one duel, or `count` identical ones.

        Args:
            first: an arm.
            second: an arm, perhaps the same.
            first_wins: 1, 0, or 0.5 for a tie.
            count: how many duels this stands for.
        """
        self.duels += count
        if first == second:
            return
        wins = self._wins
        first_before, second_before = wins.item(first, second), wins.item(second, first)
        first_now = first_before + first_wins * count
        second_now = second_before + (1 - first_wins) * count
        wins[first, second] = first_now
        wins[second, first] = second_now
        if (first_now > second_now) != (first_before > second_before):
            self._beats[first] += 1 if first_now > second_now else -1
            self.turns += 1
        if (second_now > first_now) != (second_before > first_before):
            self._beats[second] += 1 if second_now > first_now else -1
            self.turns += 1

    def add(
        self,
        first: Integers,
        second: Integers,
        first_wins: Floats,
        count: Integers | None = None,
    ) -> None:
        """Count m entries at once; the same as `add_one` for each of them.

        Args:
            first: (m,) arms.
            second: (m,) arms.
            first_wins: (m,) of 1, 0 or 0.5.
            count: (m,) how many duels each entry stands for; one each when left out.
        """
        self.duels += len(first) if count is None else int(count.sum())
        n_arms = len(self._wins)
        if len(first) >= n_arms:  # then touching the whole matrix is quicker than each pair of it
            self._add_whole(first * n_arms + second, first_wins, count)
            return
        apart = first != second
        first, second, first_wins = first[apart], second[apart], first_wins[apart]
        second_wins = 1 - first_wins
        if count is not None:
            first_wins, second_wins = first_wins * count[apart], second_wins * count[apart]
        np.add.at(self._wins, (first, second), first_wins)
        np.add.at(self._wins, (second, first), second_wins)
        self._count_beats(np.unique(np.concatenate((first, second))))

    def _add_whole(self, pair: Integers, first_wins: Floats, count: Integers | None) -> None:
        """Add entries by way of two whole matrices; `pair` is first · K + second."""
        second_wins = 1 - first_wins
        if count is not None:
            first_wins, second_wins = first_wins * count, second_wins * count
        shape, size = self._wins.shape, self._wins.size
        self._wins += np.bincount(pair, first_wins, size).reshape(shape)
        self._wins += np.bincount(pair, second_wins, size).reshape(shape).T
        self._wins_over_itself.fill(0.0)
        self.turns += 1
        np.add.reduce(self._wins > self._wins.T, axis=1, dtype=np.int64, out=self._beats)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy of the attributes would cut the read-only views off from their arrays.
        return type(self).from_state, (self.state_dict(),)

    def _count_beats(self, arms: Integers) -> None:
        """Count afresh how many arms each of these beats."""
        self.turns += 1
        self._beats[arms] = (self._wins[arms] > self._wins[:, arms].T).sum(axis=1)

    def state_dict(self) -> dict[str, Any]:
        """The counts as JSON can hold them: `duels` and the K lists of `wins`."""
        return {"duels": self.duels, "wins": self._wins.tolist()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> WinCounts:
        """The counts whose `state_dict()` this was.

        Raises:
            PolicyError: this is not a state of counts.
        """
        wins, duels = _checked_wins(state.get("wins")), state.get("duels")
        if type(duels) is not int or not wins.sum() <= duels <= MAX_DUELS:
            raise PolicyError(
                "counts.duels must be an integer from the sum of all wins"
                f" to {MAX_DUELS} (found {duels!r})."
            )
        counts = cls(len(wins))
        counts.duels = duels
        counts._wins[:] = wins
        counts._count_beats(np.arange(len(wins)))
        return counts


def _checked_wins(rows: object) -> Floats:
    """A state's matrix of wins, or the reason why it is none."""
    try:
        wins = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        wins = np.empty(0)
    if not isinstance(rows, Sequence) or wins.ndim != 2 or wins.shape[0] != wins.shape[1]:
        raise PolicyError("counts.wins must be K lists of K numbers.")
    in_range = ((wins >= 0) & (wins <= MAX_DUELS)).all()
    if not in_range or (2 * wins % 1).any() or ((wins + wins.T) % 1).any() or np.diag(wins).any():
        raise PolicyError(
            "counts.wins must hold whole and half wins from 0, whole duels, and 0 on the diagonal."
        )
    return wins


def _read_only(array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """A view that follows the array and cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
