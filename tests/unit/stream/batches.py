"""One partition whose experiment is in batches, and the quotas of its rounds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.unit.stream.folding import CONTROL, DUEL, DUELS, Partition, config, searched, text

IMPRESSION = {"type": "impression", "experiment": "search", "teams": ["a"]}

START = 1_790_000_000_000
ARMS = {"0": "bm25", "1": "ltr-v1", "2": "ltr-v2"}
PAIRS = ("01", "02", "12")
NAMES = {frozenset(ARMS[side] for side in pair): pair for pair in PAIRS}
QUOTAS = (3, 10, 31, 100, 316, 1000)  # T = 1000, B = 6

Assignments = list[dict[str, Any]]


class Stream:
    """An experiment with a batched policy, and control of stream time.

    The duels of a pair are won in turns, so that no arm is ever beaten.
    """

    def __init__(self, now: int | None = START, **settings: Any) -> None:
        policy = {"name": "pcomp", "horizon": 1000, "rounds": 6}
        self.partition = Partition(config(search={"policy": policy, **settings}))
        self.first = searched(self.partition.begun)
        self.now = now
        self._number = 0
        self._fought: Counter[str] = Counter()

    def fold(self, *values: bytes) -> Assignments:
        return searched(self.partition.fold_at(self.now, *values))

    def fight(self, *pairs: str, times: int = 1) -> Assignments:
        """Fold a number of duels of each pair, one by one."""
        values = []
        for _ in range(times):
            for pair in pairs:
                self._number += 1
                self._fought[pair] += 1
                values.append(
                    text(DUEL, id=f"{self._number}", a=ARMS[pair[0]], b=ARMS[pair[1]],
                         winner="ab"[self._fought[pair] % 2])
                )  # fmt: skip
        return self.fold(*values)

    def bulk(self, pair: str, wins_a: int, wins_b: int) -> Assignments:
        self._number += 1
        return self.fold(
            text(DUELS, id=f"{self._number}", a=ARMS[pair[0]], b=ARMS[pair[1]],
                 wins_a=wins_a, wins_b=wins_b)
        )  # fmt: skip

    def control(self, action: str, arm: str | None = None) -> Assignments:
        self._number += 1
        return self.fold(text(CONTROL, id=f"{self._number}", action=action, arm=arm))

    def wait(self, milliseconds: int) -> Assignments:
        """Advance stream time by a record of another experiment."""
        assert self.now is not None
        self.now += milliseconds
        self._number += 1
        return self.fold(text(DUEL, id=f"{self._number}", experiment="ads", a="x", b="y"))

    @property
    def round(self) -> int:
        round_: int = self.partition.task.experiments["search"].state()["policy"]["own"]["round"]
        return round_


def rest(assignment: dict[str, Any]) -> dict[str, int | None]:
    """The published remaining duels of each pair."""
    return {NAMES[frozenset((it["a"], it["b"]))]: it["remaining"] for it in assignment["pairs"]}


def full(round_: int) -> dict[str, int]:
    return dict.fromkeys(PAIRS, QUOTAS[round_ - 1])


def is_alone(assignment: dict[str, Any], arm: str) -> bool:
    pair = {"a": arm, "b": arm, "share": 1.0, "remaining": None}
    return bool(assignment["pairs"] == [pair] and assignment["champion"] == arm)
