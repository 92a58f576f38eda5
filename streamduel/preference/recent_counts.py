"""Counts of the recent wins of each arm over each other arm; older ones are forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from streamduel.errors import PolicyError
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import MAX_DUELS, CountsState, WinCounts

BLOCKS: Final = 16
"""A window is forgotten in this many parts: it always holds at least 15/16 of its size, and what
follows from the counts is rebuilt only once in a sixteenth of it. Memory and state have at most
this many entries for each pair."""

Block: TypeAlias = dict[int, tuple[float, float]]
"""The wins of both arms of each pair i < j with duels in the block, by i K + j."""

_Number: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_DUELS)]


def blocks_after(duels: int, window: int) -> list[list[Any]]:
    """The blocks of a state in which all of these duels are forgotten.

    >>> blocks_after(40, window=32) == [[]] * 16
    True
    """
    return [[] for _ in range(min(BLOCKS, duels * BLOCKS // window + 1))]


class RecentState(CountsState):
    """What `RecentCounts.state_dict` returns."""

    window: Annotated[int, msgspec.Meta(ge=BLOCKS, le=MAX_DUELS)]
    recent: list[list[tuple[int, int, _Number, _Number]]]


class RecentCounts(WinCounts):
    """The wins among the last duels, for preferences that drift.

    Duel n, from 0 on, belongs to block ⌊16 n / window⌋. When a block is full, the oldest of the 16
    that are kept is dropped as a whole. So the counts are about the last duels, from 15/16 of the
    window to one less than the window. The blocks begin at fixed numbers of duels: many duels at
    once, or one entry for millions of them, give the same counts as one by one.

    A duel of an arm with itself has no winner, but takes room like any other. Otherwise a policy
    whose champion duels only with itself would never forget.

    Subtraction undoes addition exactly, all counts being multiples of 1/2 (`WinCounts`).

    Args:
        n_arms: K.
        window: the largest number of duels counted, from 16.

    Attributes:
        all_time: the counts of all duels.
        duels: how many are in the window; `wins` and `beats` are about these, too.
        turns: grows also when a pair enters or leaves the window.
        room: the number of duels, from now, with the last of which the newest block is full.
        window: as given.

    >>> counts = RecentCounts(2, window=32)
    >>> counts.add_one(0, 1, first_wins=1, count=20)
    >>> counts.add_one(1, 0, first_wins=1, count=20)
    >>> counts.duels, counts.wins.tolist(), counts.all_time.wins.tolist()
    (30, [[0.0, 10.0], [20.0, 0.0]], [[0.0, 20.0], [20.0, 0.0]])
    """

    __slots__ = ("_blocks", "_oldest", "all_time", "room", "window")

    def __init__(self, n_arms: int, window: int) -> None:
        super().__init__(n_arms)
        self.window = window
        self.all_time = WinCounts(n_arms)
        self._blocks: deque[Block] = deque([{}])
        self._oldest = 0  # the number of the first block
        self.room = self._start(1)

    def _start(self, number: int) -> int:
        """The first duel of a block: ⌈number · window / 16⌉."""
        return -(-number * self.window // BLOCKS)

    def _number(self, duel: int) -> int:
        """The block of a duel."""
        return duel * BLOCKS // self.window

    def add_one(self, first: int, second: int, first_wins: float, count: int = 1) -> None:
        """As `WinCounts.add_one`."""
        if count >= self.room:
            entry = np.array([first]), np.array([second]), np.array([first_wins], dtype=np.float64)
            self.add(*entry, np.array([count]))
            return
        self.all_time.add_one(first, second, first_wins, count)
        if (
            first != second
            and self._wins.item(first, second) == self._wins.item(second, first) == 0
        ):
            self.turns += 1
        super().add_one(first, second, first_wins, count)
        self.room -= count
        if first < second:
            self._note(first, second, first_wins * count, (1 - first_wins) * count)
        elif first > second:
            self._note(second, first, (1 - first_wins) * count, first_wins * count)

    def _note(self, low: int, high: int, low_wins: float, high_wins: float) -> None:
        """Add wins of a pair, the lower arm first, to the newest block."""
        block, pair = self._blocks[-1], low * len(self._wins) + high
        before = block.get(pair, (0.0, 0.0))
        block[pair] = (before[0] + low_wins, before[1] + high_wins)

    def add(
        self,
        first: Integers,
        second: Integers,
        first_wins: Floats,
        count: Integers | None = None,
    ) -> None:
        """As `WinCounts.add`."""
        begin = self.all_time.duels
        self.all_time.add(first, second, first_wins, count)
        end = self.all_time.duels
        newest = self._number(end)  # the block of the next duel
        self._forget(newest - BLOCKS + 1)
        start = self._start(self._oldest)
        # Entry e has the duels from ends[e] - count[e] to ends[e] - 1. Those before `start` are
        # forgotten immediately.
        ends = begin + (np.arange(1, len(first) + 1) if count is None else np.cumsum(count))
        kept = slice(int(np.searchsorted(ends, start, side="right")), None)
        first, second, first_wins, ends = first[kept], second[kept], first_wins[kept], ends[kept]
        begins = np.maximum(ends - (1 if count is None else count[kept]), start)
        super().add(first, second, first_wins, ends - begins)
        self.duels = end - start
        for number in range(max(self._number(begin), self._oldest), newest + 1):
            if number - self._oldest == len(self._blocks):
                self._blocks.append({})
            upto = np.minimum(ends, self._start(number + 1))
            share = upto - np.maximum(begins, self._start(number))
            there = (share > 0) & (first != second)
            self._note_many(first[there], second[there], first_wins[there], share[there])
        self.room = self._start(newest + 1) - end

    def last_known_beats(self) -> Integers:
        """(K,): how many arms each arm beats, by all duels of a pair that has no recent ones."""
        known = np.where(self.plays > 0, self._wins, self.all_time.wins)
        beaten: Integers = (known > known.T).sum(axis=1)
        return beaten

    def _note_many(
        self, first: Integers, second: Integers, first_wins: Floats, count: Integers
    ) -> None:
        """Add many duels of different arms to the newest block."""
        n_arms = len(self._wins)
        low, high = np.minimum(first, second), np.maximum(first, second)
        low_wins = np.where(first == low, first_wins, 1 - first_wins) * count
        pairs, entry = np.unique(low * n_arms + high, return_inverse=True)
        columns = pairs, np.bincount(entry, low_wins), np.bincount(entry, count)
        for pair, won, met in zip(*(column.tolist() for column in columns), strict=True):
            low_arm, high_arm = divmod(pair, n_arms)
            self._note(low_arm, high_arm, won, met - won)

    def _forget(self, oldest: int) -> None:
        """Drop the blocks before this one."""
        if oldest <= self._oldest:
            return
        for _ in range(min(oldest - self._oldest, len(self._blocks))):
            for pair, (low_wins, high_wins) in self._blocks.popleft().items():
                low, high = divmod(pair, len(self._wins))
                self._wins[low, high] -= low_wins
                self._wins[high, low] -= high_wins
        self._oldest = oldest
        self._count_beats(np.arange(len(self._wins)))

    def state_dict(self) -> dict[str, Any]:
        """The counts of all duels, `window`, and as `recent` the blocks, oldest first.

        A block is a list of pairs with their wins in it, [i, j, wins of i, wins of j].
        """
        n_arms = len(self._wins)
        recent = [
            [[*divmod(pair, n_arms), *wins] for pair, wins in sorted(block.items())]
            for block in self._blocks
        ]
        return {**self.all_time.state_dict(), "window": self.window, "recent": recent}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RecentCounts:
        """The counts that returned this state.

        Raises:
            PolicyError: this is not a state of recent counts.
        """
        try:
            saved = msgspec.convert(state, RecentState)
        except msgspec.ValidationError as error:
            raise PolicyError(f"counts are damaged: {error}.") from error
        counts = cls(len(saved.wins), saved.window)
        counts.all_time._set(saved)
        newest = counts._number(saved.duels)
        counts._oldest = max(0, newest - BLOCKS + 1)
        length = newest - counts._oldest + 1
        if len(saved.recent) != length:
            raise PolicyError(f"counts.recent must be a list of {length} blocks.")
        counts._blocks.clear()
        for number, rows in enumerate(saved.recent, start=counts._oldest):
            counts._restore_block(rows, number)
        if (counts._wins > counts.all_time.wins).any():
            raise PolicyError("counts.recent must not hold more wins than counts.wins.")
        counts.duels = saved.duels - counts._start(counts._oldest)
        counts.room = counts._start(newest + 1) - saved.duels
        counts._count_beats(np.arange(len(saved.wins)))
        return counts

    def _restore_block(self, rows: list[tuple[int, int, float, float]], number: int) -> None:
        """Append a block of a state."""
        pairs = [(low, high) for low, high, *_ in rows]
        met = [won + lost for *_, won, lost in rows]
        fits = (
            pairs == sorted(set(pairs))
            and all(0 <= low < high < len(self._wins) for low, high in pairs)
            and all(duels > 0 and duels % 1 == 0 for duels in met)
            and not any(2 * won % 1 for _, _, won, _ in rows)
        )
        if not fits:
            raise PolicyError(
                "counts.recent must hold blocks of pairs i < j in ascending order, each as"
                " [i, j, wins of i, wins of j], with whole and half wins and whole duels."
            )
        room = min(self._start(number + 1), self.all_time.duels) - self._start(number)
        if sum(met) > room:
            raise PolicyError(
                f"counts.recent must hold at most {room} duels in block {number - self._oldest}"
                f" (found {sum(met):.0f})."
            )
        self._blocks.append({})
        for low, high, won, lost in rows:
            self._note(low, high, won, lost)
            self._wins[low, high] += won
            self._wins[high, low] += lost
