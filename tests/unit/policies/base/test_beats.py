"""Sampled comparisons: win probabilities of the Beta posterior."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.policies.base.beta import BetaPosterior, beats
from streamduel.policies.base.generator import Generator
from streamduel.preference.counts import WinCounts

# 0 and 1 with few duels, with a tie among the duels or not, 0 and 2 often, 1 and 2 never.
RESULTS = [(0, 1, 6.5, 3.5), (0, 2, 90.0, 110.0), (0, 3, 7.0, 3.0)]


@pytest.mark.parametrize("pairs", [[(0, 1)], [(2, 0)], [(1, 0), (0, 2), (2, 1), (3, 0), (1, 3)]])
def test_win_probability_equals_posterior(
    pairs: list[tuple[int, int]],
) -> None:
    counts = WinCounts(4)
    for first, second, won, lost in RESULTS:
        counts.add_one(first, second, 0.5, int(2 * (won % 1)))
        counts.add_one(first, second, 1, int(won))
        counts.add_one(first, second, 0, int(lost))
    posterior, generator = BetaPosterior(counts), Generator(5)
    first, second = np.array(pairs, dtype=np.int64).T
    runs = 4_000
    won = np.mean([beats(posterior, first, second, generator) for _ in range(runs)], axis=0)
    rng = np.random.RandomState(1)
    for share, (i, j) in zip(won.tolist(), pairs, strict=True):
        chances = rng.beta(counts.wins[i, j] + 1, counts.wins[j, i] + 1, size=200_000)
        assert abs(share - (chances > 0.5).mean()) < 4 * 0.5 / runs**0.5


def test_empty_input_takes_no_random_word() -> None:
    generator, none = Generator(5), np.empty(0, dtype=np.int64)
    before = generator.state_dict()
    assert len(beats(BetaPosterior(WinCounts(3)), none, none, generator)) == 0
    assert generator.state_dict() == before
