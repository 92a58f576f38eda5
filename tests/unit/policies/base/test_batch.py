"""An open batch: the duels that count towards it and the order of its draws."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.batch import Batch, Targets
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.state import convert
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import MAX_DUELS, WinCounts

ARMS = 5


def open_batch(quotas: Integers | int, counts: WinCounts | None = None) -> tuple[Batch, WinCounts]:
    """A batch with these quotas, and its counts."""
    counts = counts or WinCounts(ARMS)
    batch = Batch(counts)
    n_arms = len(counts.wins)
    batch.open(np.broadcast_to(np.array(quotas), (n_arms, n_arms)))
    return batch, counts


def uneven(n_arms: int, seed: int = 1) -> Integers:
    """Symmetric quotas from 0 to 9."""
    upper = np.triu(np.random.RandomState(seed).randint(10, size=(n_arms, n_arms)), k=1)
    quotas: Integers = upper + upper.T
    return quotas


def observe(batch: Batch, counts: WinCounts, first: int, second: int, count: int = 1) -> None:
    counts.add_one(first, second, 1, count)
    batch.refresh(first, second)


def test_nothing_lacking_before_opening() -> None:
    batch = Batch(WinCounts(ARMS))
    assert batch.lacking == 0
    assert not batch.remaining().any()


def test_every_duel_counts_towards_quota_of_its_pair() -> None:
    batch, counts = open_batch(3)
    assert batch.lacking == 30
    observe(batch, counts, 1, 0)
    observe(batch, counts, 0, 1)
    counts.add_one(0, 1, 0.5)
    batch.refresh_many(np.array([0]), np.array([1]))
    assert batch.remaining()[0].tolist() == [0, 0, 3, 3, 3]
    assert (batch.remaining() == batch.remaining().T).all()
    assert batch.lacking == 27


def test_surplus_duels_do_not_count_for_another_pair() -> None:
    batch, counts = open_batch(3)
    observe(batch, counts, 4, 2, 10**12)
    assert batch.lacking == 27
    assert batch.remaining()[2].tolist() == [3, 3, 0, 3, 0]
    observe(batch, counts, 3, 3, 5)
    assert batch.lacking == 27


def test_earlier_duels_do_not_count() -> None:
    counts = WinCounts(ARMS)
    counts.add_one(0, 1, 1, count=8)
    batch, _ = open_batch(2, counts)
    assert batch.lacking == 20
    batch.open(np.full((ARMS, ARMS), 4))
    assert batch.lacking == 40


def test_closed_batch_lacks_nothing() -> None:
    batch, counts = open_batch(2)
    batch.close()
    assert batch.lacking == 0
    observe(batch, counts, 0, 1)
    assert batch.lacking == 0
    assert not batch.remaining().any()


@pytest.mark.parametrize("n_arms", [2, 3, 5, 8, 9])
def test_updates_equal_batch_rebuilt_from_counts(n_arms: int) -> None:
    batch, counts = open_batch(uneven(n_arms), WinCounts(n_arms))
    rng = random.Random(n_arms)
    for _ in range(200):
        observe(batch, counts, rng.randrange(n_arms), rng.randrange(n_arms), rng.randint(1, 3))
        rebuilt = Batch(counts)
        rebuilt.restore(batch.save())
        assert batch.lacking == rebuilt.lacking == batch.remaining().sum() // 2
        if batch.lacking:
            assert batch.draw(Generator(5)) == rebuilt.draw(Generator(5))


@pytest.mark.parametrize("n_arms", [2, 3, 5, 8, 9])
@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_many_draws_equal_single_draws(n_arms: int, most: int) -> None:
    quotas = uneven(n_arms, seed=n_arms)
    quotas[0, 1] = quotas[1, 0] = 3  # two arms: at least one pair
    batch, counts = open_batch(quotas, WinCounts(n_arms))
    together, apart = Generator(4), Generator(4)
    fought = np.zeros((n_arms, n_arms), dtype=np.int64)
    while batch.lacking:
        for first, second in batch.draw_many(together, most).tolist():
            assert batch.draw(apart) == (first, second)
            observe(batch, counts, first, second)
            fought[first, second] += 1
    assert together.state_dict() == apart.state_dict()
    assert (fought + fought.T == quotas).all()


def test_draws_proportional_to_lacking_duels() -> None:
    quotas = np.zeros((3, 3), dtype=np.int64)
    quotas[0, 1], quotas[0, 2], quotas[1, 2] = 100, 300, 600
    batch, _ = open_batch(quotas, WinCounts(3))
    generator = Generator(2)
    drawn = Counter(batch.draw(generator) for _ in range(10_000))
    # Binomial; five standard deviations.
    for pair, share in (((0, 1), 0.1), ((0, 2), 0.3), ((1, 2), 0.6)):
        assert abs(drawn[pair] - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


def test_partial_batch_favours_no_pair() -> None:
    half = np.zeros((ARMS, ARMS))
    for seed in range(400):
        batch, _ = open_batch(8)
        pairs = batch.draw_many(Generator(seed), 40)
        np.add.at(half, (pairs[:, 0], pairs[:, 1]), 1)
    times = half[np.triu_indices(ARMS, k=1)]
    # Hypergeometric: of 80 duels 8 are the pair's, 40 are drawn; mean 4, variance 36 / 79 * 4.
    assert abs(times - 1600).max() < 5 * (400 * 4 * 36 / 79) ** 0.5


def test_duels_in_flight_drawn_again_only_when_all_are() -> None:
    batch, _ = open_batch(uneven(ARMS))
    quotas = uneven(ARMS)
    generator, fresh = Generator(3), batch.save()
    in_flight: Counter[tuple[int, int]] = Counter()

    def draw_in_flight(times: int) -> None:
        for _ in range(times):
            pair = batch.draw(generator)
            in_flight[pair] += 1
            batch.mark_in_flight(*pair, in_flight[pair])

    draw_in_flight(batch.lacking)
    assert all(quotas[pair] == times for pair, times in in_flight.items())
    draw_in_flight(batch.lacking)
    assert all(2 * quotas[pair] == times for pair, times in in_flight.items())
    draw_in_flight(batch.lacking // 2)
    for first, second in in_flight:
        batch.mark_in_flight(second, first, 0)
    untouched, _ = open_batch(uneven(ARMS))
    assert batch.save() == fresh
    assert [batch.draw(Generator(9)) for _ in range(5)] == [
        untouched.draw(Generator(9)) for _ in range(5)
    ]
    assert (batch.draw_many(Generator(9), 99) == untouched.draw_many(Generator(9), 99)).all()


def test_huge_quotas_are_capped() -> None:
    counts = WinCounts(64)
    batch, _ = open_batch(2**62, counts)
    assert batch.lacking == 64 * 63 // 2 * min(MAX_DUELS, 2**62 // 64**2)
    first, second = batch.draw(Generator(1))
    assert 0 <= first < second < 64


@pytest.mark.parametrize(
    "targets",
    [
        None,
        "damaged",
        [],
        [[1] * ARMS] * ARMS,
        [[0] * ARMS] * (ARMS - 1),
        [[0] * (ARMS - row) for row in range(ARMS - 1)],
        [[0.5] * ARMS] * ARMS,
        [[False] * ARMS] * ARMS,
        [[-1] * ARMS] * ARMS,
        [[2**60] * ARMS] * ARMS,
    ],
)
def test_damaged_targets_rejected(targets: object) -> None:
    with pytest.raises(PolicyError, match=r"targets|damaged"):
        Batch(WinCounts(ARMS)).restore(convert(targets, Targets, "batch"))
