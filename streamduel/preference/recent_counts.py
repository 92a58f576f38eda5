"""How often each arm has beaten each other arm of late: what is long past is forgotten."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from streamduel.errors import PolicyError
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import MAX_DUELS, WinCounts

BLOCKS: Final = 16
"""A window is forgotten in so many parts: it never holds less than 15/16 of what it may, and what
follows from the counts is made anew only once in a sixteenth of it. Memory and state have so many
entries for each pair at most."""

Block: TypeAlias = dict[int, tuple[float, float]]
"""The wins of both arms of each pair i < j that has met in it, by i K + j."""


class RecentCounts(WinCounts):
    """The wins among the last duels, for preferences that drift; exact, however duels are told.

    Duel n, from 0 on, belongs to block ⌊16 n / window⌋. When a block is full, the oldest of the 16
    that are kept is dropped as a whole. So what is in view are the last duels, from 15/16 of the
    window to one less than the window. The blocks are at fixed numbers of duels: many duels told at
    once, or one entry that stands for millions, leave the very counts that one by one would.

    A duel of an arm with itself teaches nothing, and takes room like any other. Otherwise a policy
    that has settled, whose champion meets only itself, would never forget what it knows.

    Subtraction undoes addition exactly, all counts being multiples of 1/2 (`WinCounts`).

    Args:
        n_arms: K.
        window: of so many duels at most, from 16.

    Attributes:
        all_time: the counts of all duels.
        duels: how many are in view; `wins` and `beats` are about these, too.
        turns: grows also when a pair comes into view or goes out of it.
        room: how many more duels there may be until, with the last of them, a block is full.
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
        """Count one duel, or `count` identical ones.

        Args:
            first: an arm.
            second: an arm, perhaps the same.
            first_wins: 1, 0, or 0.5 for a tie.
            count: how many duels this stands for.
        """
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
        """Put wins of a pair, the lower arm first, into the newest block."""
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
        """Count m entries at once; the same as `add_one` for each of them.

        Args:
            first: (m,) arms.
            second: (m,) arms.
            first_wins: (m,) of 1, 0 or 0.5.
            count: (m,) how many duels each entry stands for; one each when left out.
        """
        begin = self.all_time.duels
        self.all_time.add(first, second, first_wins, count)
        end = self.all_time.duels
        newest = self._number(end)  # where the next duel will be
        self._forget(newest - BLOCKS + 1)
        start = self._start(self._oldest)
        # Entry e stands for the duels from ends[e] - count[e] to ends[e] - 1. What it has of those
        # before `start` is not even taken in.
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
        """(K,): how many arms each arm beats; of a pair that is not in view, in all its duels.

        What has long been settled, or could not be asked of late, is better known from former times
        than not at all.
        """
        known = np.where(self.plays > 0, self._wins, self.all_time.wins)
        beaten: Integers = (known > known.T).sum(axis=1)
        return beaten

    def _note_many(
        self, first: Integers, second: Integers, first_wins: Floats, count: Integers
    ) -> None:
        """Put many duels of different arms into the newest block."""
        n_arms = len(self._wins)
        low, high = np.minimum(first, second), np.maximum(first, second)
        low_wins = np.where(first == low, first_wins, 1 - first_wins) * count
        pairs, entry = np.unique(low * n_arms + high, return_inverse=True)
        columns = pairs, np.bincount(entry, low_wins), np.bincount(entry, count)
        for pair, won, met in zip(*(column.tolist() for column in columns), strict=True):
            low_arm, high_arm = divmod(pair, n_arms)
            self._note(low_arm, high_arm, won, met - won)

    def _forget(self, oldest: int) -> None:
        """Drop the blocks before one."""
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
        """The counts whose `state_dict()` this was.

        Raises:
            PolicyError: this is not a state of recent counts.
        """
        all_time = WinCounts.from_state(state)
        window, recent = state.get("window"), state.get("recent")
        if type(window) is not int or not BLOCKS <= window <= MAX_DUELS:
            raise PolicyError(
                f"counts.window must be an integer from {BLOCKS} to {MAX_DUELS} (found {window!r})."
            )
        counts = cls(len(all_time.wins), window)
        counts.all_time = all_time
        newest = counts._number(all_time.duels)
        counts._oldest = max(0, newest - BLOCKS + 1)
        length = newest - counts._oldest + 1
        if not isinstance(recent, list) or len(recent) != length:
            raise PolicyError(f"counts.recent must be a list of {length} blocks.")
        counts._blocks.clear()
        for number, rows in enumerate(recent, start=counts._oldest):
            counts._take_block(rows, number)
        if (counts._wins > all_time.wins).any():
            raise PolicyError("counts.recent must not hold more wins than counts.wins.")
        counts.duels = all_time.duels - counts._start(counts._oldest)
        counts.room = counts._start(newest + 1) - all_time.duels
        counts._count_beats(np.arange(len(all_time.wins)))
        return counts

    def _take_block(self, rows: object, number: int) -> None:
        """Append a block as a state has it, or say why it is none."""
        pairs, low_wins, high_wins = _checked_block(rows, len(self._wins))
        found = (low_wins + high_wins).sum()
        most = min(self._start(number + 1), self.all_time.duels) - self._start(number)
        if found > most:
            raise PolicyError(
                f"counts.recent must hold at most {most} duels in block {number - self._oldest}"
                f" (found {found:.0f})."
            )
        self._blocks.append({})
        for pair, won, lost in zip(
            *(it.tolist() for it in (pairs, low_wins, high_wins)), strict=True
        ):
            low, high = divmod(pair, len(self._wins))
            self._note(low, high, won, lost)
            self._wins[low, high] += won
            self._wins[high, low] += lost


def _checked_block(rows: object, n_arms: int) -> tuple[Integers, Floats, Floats]:
    """The pairs i K + j of a state's block and the wins of both arms, or why they are none."""
    table = _table(rows)
    low, high, low_wins, high_wins = table.T
    pairs, met = low * n_arms + high, low_wins + high_wins
    fits = (
        (table >= 0).all()
        and not (table[:, :2] % 1).any()
        and ((low < high) & (high < n_arms)).all()
        and (np.diff(pairs) > 0).all()
        and not (2 * low_wins % 1).any()
        and ((met > 0) & (met % 1 == 0)).all()
    )
    if not fits:
        raise PolicyError(
            "counts.recent must hold blocks of pairs i < j in ascending order, each as"
            " [i, j, wins of i, wins of j], with whole and half wins and whole duels."
        )
    return pairs.astype(np.int64), low_wins, high_wins


def _table(rows: object) -> Floats:
    """A list of rows of four finite numbers as an array; a row of -1 if it is none."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if isinstance(rows, list) and not rows:
        return np.empty((0, 4))
    if table.ndim != 2 or table.shape[1] != 4 or not np.isfinite(table).all():
        return np.full((1, 4), -1.0)
    return table
