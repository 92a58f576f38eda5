"""The policy's generator: unbiased, exact and identical on all platforms."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator


def chi_square(counts: Counter[object], cells: int) -> float:
    """Chi-square statistic of equal counts: mean cells - 1, variance twice that."""
    expected = counts.total() / cells
    missing = (cells - len(counts)) * expected
    return missing + sum((count - expected) ** 2 / expected for count in counts.values())


def test_pinned_stream() -> None:
    # The draws of this seed must never change: old snapshots must continue identically.
    generator = Generator(2024)
    assert [generator.below(10**6) for _ in range(5)] == [675831, 214323, 309452, 799466, 995802]
    assert generator.permutation(8) == [3, 2, 4, 6, 5, 7, 0, 1]


def test_below_uses_high_word_of_numpys_pcg64() -> None:
    words = np.random.PCG64(5).random_raw(100).tolist()
    generator = Generator(5)
    assert [generator.below(1000) for _ in range(100)] == [word * 1000 >> 64 for word in words]


@pytest.mark.parametrize("n", [2, 3, 6, 7, 10, 64])
def test_below_is_uniform(n: int) -> None:
    generator = Generator(n)
    counts: Counter[object] = Counter(generator.below(n) for _ in range(20_000))
    assert chi_square(counts, n) < n - 1 + 4 * (2 * (n - 1)) ** 0.5
    assert all(0 <= result < n for result in counts if isinstance(result, int))


def test_below_rejects_biased_words() -> None:
    # With three quarters of 2**64 results, a quarter of the words must be rejected; without
    # rejection the results divisible by 3 would be twice as frequent as the others.
    n = 3 << 62
    words = itertools.islice(iter(np.random.PCG64(1).random_raw, None), 10_000)
    kept = [word * n >> 64 for word in words if word * n % 2**64 >= 2**64 % n]
    generator = Generator(1)
    assert [generator.below(n) for _ in range(len(kept))] == kept
    assert 7_200 < len(kept) < 7_800
    assert chi_square(Counter(result % 3 for result in kept), 3) < 10


def test_below_uses_the_whole_word() -> None:
    assert Generator(3).below(2**64) == np.random.PCG64(3).random_raw()


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_invalid_ranges_rejected(n: int) -> None:
    with pytest.raises(PolicyError, match=f"possible results .found {n}"):
        Generator(0).below(n)


@pytest.mark.parametrize("n", [2, 12, 6_006, 1 << 32])
def test_many_draws_equal_single_ones(n: int) -> None:
    one, many = Generator(7), Generator(7)
    assert many.below_each(n, 500).tolist() == [one.below(n) for _ in range(500)]
    assert many.state_dict() == one.state_dict()


def test_many_draws_reject_biased_words() -> None:
    """A state whose next word is 0, which is one too many for three results."""
    multiplier, period = 0x2360ED051FC65DA44385DF649FCCF645, 1 << 128
    increment = int(Generator(7).state_dict()["increment"], 16)
    before = (-increment * pow(multiplier, -1, period)) % period
    state = {"state": f"{before:#034x}", "increment": f"{increment:#034x}"}
    assert Generator.from_state(state).words(1).tolist() == [0]
    one, many = Generator.from_state(state), Generator.from_state(state)
    assert many.below_each(3, 5).tolist() == [one.below(3) for _ in range(5)]
    assert many.state_dict() == one.state_dict() != Generator.from_state(state).state_dict()


def test_draw_of_one_result_takes_no_word() -> None:
    generator = Generator(0)
    before = generator.state_dict()
    assert generator.below(1) == 0
    assert generator.coin(1, 1)
    assert generator.permutation(1) == [0]
    assert generator.permutation(0) == []
    assert generator.state_dict() == before


def test_coin_probability() -> None:
    generator = Generator(8)
    heads = sum(generator.coin(1, 4) for _ in range(20_000))
    assert abs(heads - 5_000) < 4 * (20_000 * 3 / 16) ** 0.5
    for numerator, denominator in ((-1, 2), (3, 2), (1, 0)):
        with pytest.raises(PolicyError, match="from 0 to 1"):
            generator.coin(numerator, denominator)


def test_permutations_are_uniform() -> None:
    generator = Generator(4)
    counts: Counter[object] = Counter(tuple(generator.permutation(4)) for _ in range(24_000))
    assert len(counts) == 24
    assert chi_square(counts, 24) < 23 + 4 * 46**0.5


def test_state_json_round_trip() -> None:
    generator = Generator(2**90)
    generator.permutation(100)
    restored = Generator.from_state(json.loads(json.dumps(generator.state_dict())))
    assert [restored.below(1000) for _ in range(50)] == [generator.below(1000) for _ in range(50)]
    assert restored.state_dict() == generator.state_dict()


@pytest.mark.parametrize(
    "state", [{}, {"state": "0x1"}, {"state": "x", "increment": "0x1"}, {"state": 1}, None]
)
def test_damaged_states_rejected(state: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match="a generator's state is damaged"):
        Generator.from_state(state)
    too_long = {"state": hex(2**128), "increment": "0x1"}
    with pytest.raises(PolicyError, match="a generator's state is damaged"):
        Generator.from_state(too_long)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_invalid_seeds_rejected(seed: object) -> None:
    with pytest.raises(PolicyError, match="seed must be an integer from 0"):
        Generator(seed)  # type: ignore[arg-type]


def test_lent_words_are_taken_one_by_one() -> None:
    plain, lending = Generator(3), Generator(3)
    words = lending.lend(100)
    assert words.tolist() == plain.words(100).tolist()
    lending.ahead -= 40
    plain.skip(2**128 - 60)
    assert lending.state_dict() == plain.state_dict()
    assert lending.lent is None
    assert lending.lend(8).tolist() == plain.words(8).tolist()
    lending.ahead -= 8
    assert [lending.below(5) for _ in range(9)] == [plain.below(5) for _ in range(9)]
    lending.lend(8)
    lending.skip(3)
    plain.skip(3)
    assert lending.words(2).tolist() == plain.words(2).tolist()
