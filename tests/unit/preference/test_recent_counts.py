"""Recent counts against a plain list of duels, for any batching."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
from collections import deque
from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from streamduel.errors import PolicyError
from streamduel.preference.counts import MAX_DUELS, WinCounts
from streamduel.preference.recent_counts import BLOCKS, RecentCounts

ARMS = 4


class Entry(NamedTuple):
    """Arguments of `add_one`."""

    first: int
    second: int
    first_wins: float
    times: int


class Slow:
    """Reference: every duel stored separately, one queue per block."""

    def __init__(self, n_arms: int, window: int) -> None:
        self.n_arms, self.window, self.told = n_arms, window, 0
        self.blocks: deque[list[tuple[int, int, float]]] = deque([[]])

    def add(self, entry: Entry) -> None:
        for _ in range(entry.times):
            self.blocks[-1].append(entry[:3])
            self.told += 1
            # Block b has the duels n with b <= 16 n / window < b + 1.
            if self.told * BLOCKS // self.window > (self.told - 1) * BLOCKS // self.window:
                self.blocks.append([])
                if len(self.blocks) > BLOCKS:
                    self.blocks.popleft()

    def duels(self) -> int:
        return sum(map(len, self.blocks))

    def wins(self) -> np.ndarray:
        wins = np.zeros((self.n_arms, self.n_arms))
        for first, second, first_wins in (duel for block in self.blocks for duel in block):
            if first != second:
                wins[first, second] += first_wins
                wins[second, first] += 1 - first_wins
        return wins


arms = st.integers(0, ARMS - 1)
outcomes = st.sampled_from([0.0, 0.5, 1.0])
entries = st.lists(
    st.builds(Entry, arms, arms, outcomes, st.one_of(st.just(1), st.integers(1, 70))), max_size=40
)
# The smallest window, one with unequal blocks, one with equal blocks, one that never fills.
windows = st.sampled_from([16, 37, 64, 5_000])
examples = settings(derandomize=True, max_examples=150, deadline=None, database=None)


def columns(told: Sequence[Entry]) -> tuple[Any, Any, Any, Any]:
    first, second, first_wins, count = zip(*told, strict=True) if told else ((), (), (), ())
    whole = (np.array(each, dtype=np.int64) for each in (first, second, count))
    one, other, times = whole
    return one, other, np.array(first_wins, dtype=np.float64), times


def assert_equal(counts: RecentCounts, slow: Slow, all_time: WinCounts) -> None:
    assert counts.wins.tolist() == slow.wins().tolist()
    assert counts.duels == slow.duels()
    beats = (slow.wins() > slow.wins().T).sum(axis=1)
    assert counts.beats.tolist() == beats.tolist()
    assert counts.all_time.state_dict() == all_time.state_dict()
    through_json = json.loads(json.dumps(counts.state_dict()))
    assert RecentCounts.from_state(through_json).state_dict() == counts.state_dict()


def last_known_beats(slow: Slow, all_time: WinCounts) -> list[int]:
    beaten, recent = [0] * ARMS, slow.wins()
    for i, j in permutations(range(ARMS), 2):
        in_view = recent[i, j] + recent[j, i] > 0
        wins = recent if in_view else all_time.wins
        beaten[i] += int(wins[i, j] > wins[j, i])
    return beaten


@examples
@given(entries, windows)
def test_single_adds_keep_last_blocks(told: list[Entry], window: int) -> None:
    counts, slow, all_time = RecentCounts(ARMS, window), Slow(ARMS, window), WinCounts(ARMS)
    for entry in told:
        turns, known = counts.turns, counts.last_known_beats().tolist()
        counts.add_one(*entry)
        slow.add(entry)
        all_time.add_one(*entry)
        assert_equal(counts, slow, all_time)
        assert counts.last_known_beats().tolist() == last_known_beats(slow, all_time)
        assert counts.turns > turns or counts.last_known_beats().tolist() == known


@examples
@given(st.lists(entries, max_size=5), windows)
def test_batch_add_equals_single_adds(parts: list[list[Entry]], window: int) -> None:
    counts, slow, all_time = RecentCounts(ARMS, window), Slow(ARMS, window), WinCounts(ARMS)
    one_by_one = RecentCounts(ARMS, window)
    for told in parts:
        counts.add(*columns(told))
        all_time.add(*columns(told))
        for entry in told:
            slow.add(entry)
            for _ in range(entry.times):
                one_by_one.add_one(*entry[:3])
        assert_equal(counts, slow, all_time)
        assert counts.state_dict() == one_by_one.state_dict()
        assert counts.room == one_by_one.room


@examples
@given(entries, windows)
def test_room_is_rest_of_open_block(told: list[Entry], window: int) -> None:
    counts, slow = RecentCounts(ARMS, window), Slow(ARMS, window)
    for entry in told:
        counts.add_one(*entry)
        slow.add(entry)
        probe, oldest = copy.deepcopy(slow), slow.blocks[-1]
        probe.add(Entry(0, 0, 0.5, counts.room - 1))
        assert len(probe.blocks[-1]) == len(oldest) + counts.room - 1
        probe.add(Entry(0, 0, 0.5, 1))
        assert probe.blocks[-1] == []


def test_missing_counts_mean_one_duel_per_entry() -> None:
    dice = np.random.RandomState(1)
    first, second = dice.randint(ARMS, size=(2, 200))
    first_wins = dice.randint(3, size=200) / 2
    plain, counted = RecentCounts(ARMS, 50), RecentCounts(ARMS, 50)
    plain.add(first, second, first_wins)
    counted.add(first, second, first_wins, np.ones(200, dtype=np.int64))
    assert plain.state_dict() == counted.state_dict()


@pytest.mark.parametrize("window", [16, 100, 12_345])
def test_duels_in_window_between_15_16_and_window(
    window: int,
) -> None:
    counts, seen = RecentCounts(2, window), set()
    for _ in range(2 * window):
        counts.add_one(0, 1, 1.0)
        seen.add(counts.duels)
    assert max(seen) == window - 1
    seen.clear()
    for _ in range(window):
        counts.add_one(0, 1, 1.0)
        seen.add(counts.duels)
    assert min(seen) == window - -(-window // BLOCKS)


def test_self_duels_advance_window() -> None:
    counts = RecentCounts(3, 64)
    counts.add_one(0, 1, 1.0, 50)
    turns = counts.turns
    for _ in range(63):
        counts.add_one(2, 2, 0.5)
    assert counts.duels == 61
    assert counts.wins.sum() == 0
    assert counts.beats.tolist() == [0, 0, 0]
    assert counts.turns > turns
    assert counts.all_time.wins[0, 1] == 50


def test_large_counts_in_constant_time() -> None:
    counts = RecentCounts(3, 1_000)
    counts.add_one(0, 1, 1.0, 10)
    counts.add_one(2, 2, 0.5, 10**12)
    counts.add_one(1, 0, 0.5, 10**12 + 1)
    counts.add(*columns([Entry(0, 2, 1.0, 10**12), Entry(1, 1, 0.5, 10**12), Entry(0, 2, 0.0, 7)]))
    assert counts.wins[2, 0] == counts.wins.sum() == 7
    assert counts.all_time.duels == 4 * 10**12 + 18
    # Blocks of 62.5 duels on average: 4 * 10**12 begins one, so 15 and the newest 18 are in view.
    assert counts.duels == 955


def memory_of(counts: RecentCounts) -> int:
    """Bytes of all objects that the counts refer to.

    tracemalloc also has the interpreter's lists of free tuples and floats, and what they contain
    depends on the tests before.
    """
    sizes, left = dict[int, int](), [counts]
    while left:
        each = left.pop()
        if id(each) not in sizes and not isinstance(each, type):
            sizes[id(each)] = sys.getsizeof(each)
            left += gc.get_referents(each)
    return sum(sizes.values())


def test_memory_bounded_by_pairs_and_blocks() -> None:
    counts, dice = RecentCounts(10, 100_000), np.random.RandomState(3)

    def add_random(times: int) -> None:
        for _ in range(times):
            first, second = dice.randint(10, size=(2, 1_000))
            counts.add(first, second, dice.randint(3, size=1_000) / 2)

    add_random(200)
    held = memory_of(counts)
    add_random(300)
    assert memory_of(counts) - held < 5_000
    blocks = counts.state_dict()["recent"]
    assert len(blocks) == BLOCKS
    assert max(map(len, blocks)) == 45


def small_example() -> RecentCounts:
    counts = RecentCounts(3, 32)
    for first, second, first_wins, count in [(0, 1, 1.0, 20), (2, 2, 0.5, 7), (2, 1, 0.5, 14)]:
        counts.add_one(first, second, first_wins, count)
    return counts


def test_state_lists_blocks() -> None:
    state = small_example().state_dict()
    # 41 duels in blocks of 2: the open block is the twentieth, and the oldest in view the fifth.
    lone: list[list[Any]] = [[]] * 3
    assert state["recent"] == [
        *[[[0, 1, 2.0, 0.0]]] * 5,
        *lone,
        [[1, 2, 0.5, 0.5]],
        *[[[1, 2, 1.0, 1.0]]] * 6,
        [[1, 2, 0.5, 0.5]],
    ]
    assert state["window"] == 32
    assert state["duels"] == 41
    assert state["wins"] == [[0.0, 20.0, 0.0], [0.0, 0.0, 7.0], [0.0, 7.0, 0.0]]


def test_copies_are_complete_and_independent() -> None:
    counts = small_example()
    for twin in (copy.deepcopy(counts), pickle.loads(pickle.dumps(counts))):
        assert twin.state_dict() == counts.state_dict()
        twin.add_one(0, 2, 1.0)
        assert twin.wins[0, 2] == 1
        assert counts.wins[0, 2] == 0


@pytest.mark.parametrize("window", [None, 15, 32.0, "32", True, MAX_DUELS + 1])
def test_invalid_windows_rejected(window: object) -> None:
    with pytest.raises(PolicyError, match=r"damaged.*window"):
        RecentCounts.from_state({**small_example().state_dict(), "window": window})


@pytest.mark.parametrize("recent", [None, "recent", [], [[]] * 15, [[]] * 17, {}])
def test_invalid_block_counts_rejected(recent: object) -> None:
    with pytest.raises(PolicyError, match=r"must be a list of 16 blocks|damaged.*recent"):
        RecentCounts.from_state({**small_example().state_dict(), "recent": recent})


@pytest.mark.parametrize(
    "block",
    [
        None,
        "block",
        {},
        7,
        [0, 1, 1.0, 1.0],
        [[0, 1, 2.0]],
        [[0, 1, 2.0, 0.0, 0.0]],
        [[0, 1, 2.0, 0.0], [0, 2]],
        [[0, 1, "two", 0.0]],
        [[0, 1, float("nan"), 0.0]],
        [[0, 1, float("inf"), 0.0]],
        [[0, 1, -1.0, 2.0]],
        [[0, 1, 0.25, 0.75]],
        [[0, 1, 0.5, 0.0]],
        [[0, 1, 0.0, 0.0]],
        [[1, 0, 1.0, 0.0]],
        [[1, 1, 1.0, 0.0]],
        [[0, 3, 1.0, 0.0]],
        [[-1, 1, 1.0, 0.0]],
        [[0.5, 1, 1.0, 0.0]],
        [[0, 1, 1.0, 0.0], [0, 1, 1.0, 0.0]],
        [[1, 2, 1.0, 0.0], [0, 1, 1.0, 0.0]],
    ],
)
def test_invalid_blocks_rejected(block: object) -> None:
    state = small_example().state_dict()
    state["recent"][3] = block
    with pytest.raises(PolicyError, match=r"must hold blocks of pairs i < j|damaged.*recent"):
        RecentCounts.from_state(state)


def test_overfull_blocks_rejected() -> None:
    state = small_example().state_dict()
    state["recent"][2] = [[0, 1, 3.0, 0.0]]
    with pytest.raises(PolicyError, match=r"at most 2 duels in block 2 \(found 3\)"):
        RecentCounts.from_state(state)
    state = small_example().state_dict()
    state["recent"][-1] = [[1, 2, 2.0, 0.0]]
    with pytest.raises(PolicyError, match=r"at most 1 duels in block 15 \(found 2\)"):
        RecentCounts.from_state(state)
    state = small_example().state_dict()
    state["recent"][0] = [[0, 2, 2.0, 0.0]]
    with pytest.raises(PolicyError, match=r"not hold more wins than counts\.wins"):
        RecentCounts.from_state(state)
