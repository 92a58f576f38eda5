"""The next pair: a draw among the least played pairs, one at a time or many ahead."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.least_played import LeastPlayed, Pass
from streamduel.policies.base.state import convert
from streamduel.preference.counts import WinCounts

ARMS = 5
PAIRS = ARMS * (ARMS - 1) // 2


def least_played(counts: WinCounts, turns: LeastPlayed) -> set[tuple[int, int]]:
    """The open pairs that have been played least."""
    first, second = np.triu(turns.pairs, k=1).nonzero()
    played = counts.plays[first, second]
    least = played == played.min()
    return set(zip(first[least].tolist(), second[least].tolist(), strict=True))


def test_next_pair_is_one_of_the_least_played() -> None:
    counts, rng = WinCounts(ARMS), random.Random(3)
    turns = LeastPlayed(counts, Generator(3))
    for step in range(600):
        first, second = turns.next()
        assert (first, second) in least_played(counts, turns)
        if rng.random() < 0.9:
            counts.add_one(first, second, 1)
        if rng.random() < 0.2:  # an unrequested duel
            first, second = rng.sample(range(ARMS), 2)
            counts.add_one(first, second, 1, rng.randint(1, 3))
        if step % 100 == 99:
            pairs = turns.pairs.copy()
            one, other = rng.sample(range(ARMS), 2)
            pairs[one, other] = pairs[other, one] = False
            turns.keep(pairs)


def test_ties_broken_uniformly() -> None:
    firsts, lasts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for seed in range(2_000):
        pairs = LeastPlayed(WinCounts(ARMS), Generator(seed)).ahead(np.full((ARMS, ARMS), 9), PAIRS)
        firsts[tuple(pairs[0].tolist())] += 1
        lasts[tuple(pairs[-1].tolist())] += 1
    for tally in (firsts, lasts):
        assert len(tally) == PAIRS
        assert all(abs(times - 200) < 5 * (2_000 * 0.1 * 0.9) ** 0.5 for times in tally.values())


@pytest.mark.parametrize("seed", range(12))
def test_pairs_ahead_equal_single_turns(seed: int) -> None:
    rng = random.Random(seed)
    counts, mirror = WinCounts(ARMS), WinCounts(ARMS)
    jumping, stepping = LeastPlayed(counts, Generator(seed)), LeastPlayed(mirror, Generator(seed))
    for _ in range(60):
        fewest = np.array([[rng.choice((1, 3, 40)) for _ in range(ARMS)] for _ in range(ARMS)])
        fewest = np.maximum(fewest, fewest.T)
        due = fewest.copy()
        most = rng.choice((1, 4, 30, 1_000))
        pairs = jumping.ahead(fewest, most).tolist()
        assert 1 <= len(pairs) <= most
        for place, (first, second) in enumerate(pairs, start=1):
            assert stepping.next() == (first, second)
            counts.add_one(first, second, 1)
            mirror.add_one(first, second, 1)
            due[first, second] -= 1
            assert due[first, second] > 0 or place == len(pairs), (
                "proposed further ahead than certain"
            )
        assert jumping.save() == stepping.save()
        if rng.random() < 0.3:
            first, second, times = rng.randrange(4), 4, rng.randint(1, 5)
            counts.add_one(first, second, 1, times)
            mirror.add_one(first, second, 1, times)
        if rng.random() < 0.1 and jumping.pairs.sum() > 2:
            kept = jumping.pairs.copy()
            first, second = kept.nonzero()[0][0], kept.nonzero()[1][0]
            kept[first, second] = kept[second, first] = False
            jumping.keep(kept)
            stepping.keep(kept)


def test_single_pair_takes_no_random_word() -> None:
    generator = Generator(1)
    turns = LeastPlayed(WinCounts(2), generator)
    assert turns.next() == (0, 1)
    assert turns.ahead(np.full((2, 2), 1_000), 99).tolist() == [[0, 1]] * 99
    assert generator.state_dict() == Generator(1).state_dict()


def test_duels_in_flight_count_as_played_until_cleared() -> None:
    counts = WinCounts(ARMS)
    turns = LeastPlayed(counts, Generator(3))
    counts.add_one(*turns.next(), 1)
    before = turns.save(), turns.next()
    in_flight: Counter[tuple[int, int]] = Counter()
    for _ in range(3 * PAIRS - 1):
        pair = turns.next()
        in_flight[pair] += 1
        turns.mark_in_flight(*pair, in_flight[pair])
    assert {in_flight[pair] + counts.plays[pair] for pair in in_flight} == {3}
    for pair in in_flight:
        turns.mark_in_flight(*pair, 0)
    assert (turns.save(), turns.next()) == before


@pytest.mark.parametrize(
    "damage",
    [
        {"order": None},
        {"order": [1, 1]},
        {"order": [0]},  # an arm with itself
        {"order": [5]},  # (1, 0), which is (0, 1)
        {"order": [25]},
        {"order": [1.0]},
        {"level": -1},
        {"level": 0.5},
        {"level": None},
    ],
)
def test_damaged_pass_rejected(damage: dict[str, object]) -> None:
    turns = LeastPlayed(WinCounts(ARMS), Generator(1))
    turns.next()
    with pytest.raises(PolicyError, match=r"a pass|damaged"):
        turns.restore(convert({**turns.save(), **damage}, Pass, "pass"))
