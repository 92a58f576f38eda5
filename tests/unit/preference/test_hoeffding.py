"""Hoeffding decisions and the minimum number of duels before one is possible."""

from __future__ import annotations

import random
from math import sqrt

import numpy as np

from streamduel.preference.hoeffding import duels_until_sure, is_sure, surely_beats


def test_decided_if_mean_beyond_radius() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        wins, losses, width = rng.randrange(40), rng.randrange(40), rng.uniform(0.5, 20)
        played = wins + losses
        expected = played > 0 and abs(wins / played - 0.5) > sqrt(width / (2 * played))
        table = np.array([[0.0, wins], [losses, 0.0]])
        beats = surely_beats(table, width)
        assert is_sure(wins, losses, width) == expected == beats.any()
        assert beats[0, 1] == (expected and wins > losses)
        assert beats[1, 0] == (expected and wins < losses)


def test_undecided_at_exact_radius() -> None:
    # (6 - 2)² = 16 = 2 * 8 * 1.
    assert not is_sure(6, 2, width=1.0)
    assert is_sure(6, 2, width=0.999)


def test_unseen_pairs_and_diagonal_undecided() -> None:
    assert not surely_beats(np.zeros((3, 3)), width=0.0).any()


def test_minimum_duels_if_leader_wins_all() -> None:
    rng = random.Random(2)
    tried = 0
    while tried < 2_000:
        ahead, behind = rng.randrange(0, 400) / 2, rng.randrange(0, 200) / 2
        width = rng.uniform(0.5, 60)
        if ahead < behind or (ahead + behind) % 1 or is_sure(ahead, behind, width):
            continue
        tried += 1
        more = 1
        while not is_sure(ahead + more, behind, width):
            more += 1
        table = np.array([[0.0, behind], [ahead, 0.0]])
        fewest = duels_until_sure(table, width)
        assert fewest[0, 1] == fewest[1, 0]
        assert more - 1 <= fewest[0, 1] <= more


def test_minimum_duels_for_large_counts() -> None:
    for played in (10**6, 10**9, 10**12, 10**15):
        for width in (30.0, 45.0):
            lead = 0.999 * sqrt(2 * played * width)
            ahead = float(int((played + lead) / 2))
            table = np.array([[0.0, ahead], [played - ahead, 0.0]])
            fewest = duels_until_sure(table, width).item(0, 1)
            assert not is_sure(ahead + fewest - 1, played - ahead, width)
            assert is_sure(ahead + 1.01 * fewest + 9, played - ahead, width)
