"""Counts of the wins of each arm over each other arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from streamduel.errors import PolicyError
from streamduel.preference.arrays import Floats, Integers

_Number = TypeVar("_Number", np.float64, np.int64)

MAX_DUELS: Final = 2**51
"""The largest number of duels counted exactly: adding half a duel still changes a float64."""


def distinct_pairs(first: Integers, second: Integers, n_arms: int) -> tuple[Integers, Integers]:
    """The unordered pairs of different arms among m pairs, ascending: the lower arms, the higher.

    >>> distinct_pairs(np.array([2, 0, 1, 1]), np.array([1, 2, 2, 1]), 3)
    (array([0, 1]), array([2, 2]))
    """
    met = np.zeros(n_arms * n_arms, dtype=np.bool_)
    met[np.minimum(first, second) * n_arms + np.maximum(first, second)] = True
    met[:: n_arms + 1] = False
    return np.divmod(met.nonzero()[0], n_arms)


class FromCounts:
    """What follows from counts of wins and is kept up to date."""

    _wins: Floats

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair, possibly of an arm with itself."""

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update what depends on the counts of some `distinct_pairs`; one by one by default."""
        for pair in zip(first.tolist(), second.tolist(), strict=True):
            self.refresh(*pair)

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Note how many duels of a pair are in flight; 0 if none is."""


class CountsState(msgspec.Struct, forbid_unknown_fields=True):
    """What `WinCounts.state_dict` returns."""

    duels: Annotated[int, msgspec.Meta(ge=0, le=MAX_DUELS)]
    wins: list[list[Annotated[float, msgspec.Meta(ge=0, le=MAX_DUELS)]]]


class WinCounts:
    """The wins of K arms over each other, exactly, whatever the order in which they arrive.

    A tie is half a win each way, so all counts are multiples of 1/2, and their sums in float64 have
    no rounding error up to `MAX_DUELS`: any order of the same duels gives equal bytes. A duel of
    an arm with itself counts as a duel, but not as a win; the diagonal stays 0.

    How many arms each arm beats (has won more than half of its duels against) is updated with every
    duel, because a policy needs its champion after every duel.

    Nothing is checked here; `Policy.observe` checks duels from outside.

    Args:
        n_arms: K.

    Attributes:
        duels: all duels so far, those of an arm with itself included.
        wins: (K, K), read-only and live: [i, j] is how often i has beaten j.
        beats: (K,), read-only and live: how many arms each arm beats.
        turns: grows whenever `beats` may have changed, which is rare; results that depend on
            `beats` alone can be cached per turn.

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
            second: an arm, possibly the same.
            first_wins: 1, 0, or 0.5 for a tie.
            count: the number of duels.
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
        """Count m entries together; the same as `add_one` for each of them.

        Args:
            first: (m,) arms.
            second: (m,) arms.
            first_wins: (m,) of 1, 0 or 0.5.
            count: (m,) the number of duels of each entry; one each when left out.
        """
        self.duels += len(first) if count is None else int(count.sum())
        n_arms = len(self._wins)
        if len(first) >= n_arms:  # then updating the whole matrix is faster than its pairs
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
        """Add entries as two whole matrices; `pair` is first · K + second."""
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
        # In a copy of the attributes, the read-only views would not follow their arrays.
        return type(self).from_state, (self.state_dict(),)

    def _count_beats(self, arms: Integers) -> None:
        """Recompute how many arms each of these beats."""
        self.turns += 1
        self._beats[arms] = (self._wins[arms] > self._wins[:, arms].T).sum(axis=1)

    def state_dict(self) -> dict[str, Any]:
        """The counts, as JSON can hold them: `duels` and the K lists of `wins`."""
        return {"duels": self.duels, "wins": self._wins.tolist()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> WinCounts:
        """The counts that returned this state.

        Raises:
            PolicyError: this is not a state of counts.
        """
        try:
            saved = msgspec.convert(state, CountsState)
        except msgspec.ValidationError as error:
            raise PolicyError(f"counts are damaged: {error}.") from error
        counts = cls(len(saved.wins))
        counts._set(saved)
        return counts

    def _set(self, saved: CountsState) -> None:
        """Set these counts."""
        n_arms = len(saved.wins)
        if not n_arms or any(len(row) != n_arms for row in saved.wins):
            raise PolicyError("counts.wins must be K lists of K numbers.")
        wins = np.array(saved.wins, dtype=np.float64).reshape(n_arms, n_arms)
        if (2 * wins % 1).any() or ((wins + wins.T) % 1).any() or np.diag(wins).any():
            raise PolicyError(
                "counts.wins must hold whole and half wins, whole duels, and 0 on the diagonal."
            )
        if wins.sum() > saved.duels:
            raise PolicyError(
                f"counts.duels must be at least the sum of all wins (found {saved.duels})."
            )
        self.duels = saved.duels
        self._wins[:] = wins
        self._count_beats(np.arange(n_arms))


def _read_only(array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """A view that follows the array and cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
