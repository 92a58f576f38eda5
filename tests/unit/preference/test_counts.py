"""Win counts: exact and independent of order and batching."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.preference.counts import MAX_DUELS, WinCounts


def random_duels(m: int, n_arms: int, seed: int) -> tuple[Any, Any, Any, Any]:
    dice = np.random.RandomState(seed)
    first, second = dice.randint(n_arms, size=(2, m))
    return first, second, dice.randint(3, size=m) / 2, dice.randint(1, 5, size=m)


def beats(counts: WinCounts) -> list[int]:
    arms = range(len(counts.wins))
    return [sum(bool(counts.wins[i, j] > counts.wins[j, i]) for j in arms) for i in arms]


@pytest.mark.parametrize("n_arms", [2, 3, 10])
def test_batch_add_equals_single_adds(n_arms: int) -> None:
    one_by_one, at_once = WinCounts(n_arms), WinCounts(n_arms)
    for part in range(20):
        duels = random_duels(part * 5, n_arms, seed=part)
        at_once.add(*duels)
        for duel in zip(*(array.tolist() for array in duels), strict=True):
            one_by_one.add_one(*duel)
            assert one_by_one.beats.tolist() == beats(one_by_one)
        assert at_once.state_dict() == one_by_one.state_dict()
        assert at_once.beats.tolist() == one_by_one.beats.tolist()
    assert not at_once.wins.diagonal().any()
    assert (at_once.plays == at_once.wins + at_once.wins.T).all()
    assert at_once.plays.sum() < 2 * at_once.duels  # self-duels count as duels without a winner


def test_missing_counts_mean_one_duel_per_entry() -> None:
    first, second, first_wins, _ = random_duels(50, 4, seed=1)
    plain, counted = WinCounts(4), WinCounts(4)
    plain.add(first, second, first_wins)
    counted.add(first, second, first_wins, np.ones(50, dtype=np.int64))
    assert plain.state_dict() == counted.state_dict()


def test_only_changed_leads_are_reported() -> None:
    counts = WinCounts(3)
    course = [(0, 1, 1.0, True), (0, 1, 1.0, False), (1, 0, 1.0, False), (0, 1, 0.5, False)]
    course += [(0, 1, 0.0, True), (0, 1, 0.0, True), (2, 2, 1.0, False)]
    for first, second, first_wins, turns in course:
        before = counts.turns
        counts.add_one(first, second, first_wins)
        assert (counts.turns > before) == turns
    assert counts.beats.tolist() == [0, 1, 0]


def test_half_wins_exact_up_to_limit() -> None:
    counts = WinCounts(2)
    counts.add_one(0, 1, 1, MAX_DUELS - 1)
    counts.add_one(0, 1, 0.5)
    assert counts.wins[0, 1] - (MAX_DUELS - 1) == 0.5
    assert counts.duels == MAX_DUELS


def test_state_json_round_trip() -> None:
    counts = WinCounts(5)
    counts.add(*random_duels(200, 5, seed=3))
    copies = [
        WinCounts.from_state(json.loads(json.dumps(counts.state_dict()))),
        copy.deepcopy(counts),
        pickle.loads(pickle.dumps(counts)),
    ]
    for twin in copies:
        assert twin.state_dict() == counts.state_dict()
        assert twin.beats.tolist() == counts.beats.tolist()
        twin.add_one(0, 1, 1)
        assert twin.wins[0, 1] == counts.wins[0, 1] + 1


def test_views_are_live_and_read_only() -> None:
    counts = WinCounts(2)
    wins = counts.wins
    counts.add_one(0, 1, 1)
    assert wins[0, 1] == 1
    for view in (counts.wins, counts.beats):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1


@pytest.mark.parametrize(
    "wins",
    [
        None,
        "wins",
        [],
        [0.0, 1.0],
        [[0.0, 1.0]],
        [[0.0, 1.0], [0.0]],
        [[0.0, "one"], [0.0, 0.0]],
        [[0.0, -1.0], [0.0, 0.0]],
        [[0.0, 0.25], [0.75, 0.0]],
        [[0.0, 0.5], [0.0, 0.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[0.0, float("nan")], [0.0, 0.0]],
        [[0.0, float("inf")], [0.0, 0.0]],
    ],
)
def test_invalid_wins_rejected(wins: object) -> None:
    with pytest.raises(PolicyError, match=r"counts\.wins must|damaged.*wins"):
        WinCounts.from_state({"duels": 5, "wins": wins})


@pytest.mark.parametrize("duels", [None, 0, 1.0, "1", True, MAX_DUELS + 1])
def test_invalid_duel_counts_rejected(duels: object) -> None:
    with pytest.raises(PolicyError, match=r"counts\.duels must|damaged.*duels"):
        WinCounts.from_state({"duels": duels, "wins": [[0.0, 1.0], [0.0, 0.0]]})
