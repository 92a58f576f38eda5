"""Beta posteriors: distribution against scipy, exact one-word decisions, equal code paths."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.special import betainc

from streamduel.policies.base import beta
from streamduel.policies.base.beta import BetaPosterior
from streamduel.policies.base.generator import Generator
from streamduel.preference.counts import WinCounts
from streamduel.preference.logarithm import ln

Words = npt.NDArray[np.uint64]

# Wins and losses of a pair; half wins come from ties.
RESULTS = [
    (0, 0),
    (1, 0),
    (0, 3),
    (0.5, 0.5),
    (6.5, 3.5),
    (2, 1),
    (40, 23),
    (0, 64),
    (1, 999),
    (0.5, 1e6 - 0.5),
    (700, 700),
    (90_000.5, 60_000.5),
    (0, 1e9),
    (1e8, 3e8),
    (5e11, 5e11),
]


class Scripted(Generator):
    """A generator that returns the given words and records the requested numbers of words."""

    def __init__(self, *words: int) -> None:
        super().__init__(0)
        self.left = list(words)
        self.requested: list[int] = []

    def words(self, n: int) -> Words:
        self.requested.append(n)
        given, self.left = self.left[:n], self.left[n:]
        return np.array(given, dtype=np.uint64)


def add(counts: WinCounts, first: int, second: int, won: float, lost: float) -> None:
    """Add wins and losses, and one tie for halves."""
    for first_wins, count in ((0.5, won % 1 * 2), (1, won), (0, lost)):
        if count >= 1:
            counts.add_one(first, second, first_wins, int(count))


def of_pair(won: float, lost: float) -> BetaPosterior:
    """The posterior of two arms."""
    counts = WinCounts(2)
    add(counts, 0, 1, won, lost)
    return BetaPosterior(counts)


def of_many() -> BetaPosterior:
    """The posterior of many arms with all kinds of pairs."""
    counts, kinds = WinCounts(12), random.Random(3)
    for second in range(12):
        for first in range(second):
            add(counts, first, second, *kinds.choice(RESULTS))
    return BetaPosterior(counts)


def some_pairs(k: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pairs of twelve arms, the lower one first or second."""
    rng = np.random.RandomState(seed)
    first = rng.randint(12, size=k)
    return first, (first + rng.randint(1, 12, size=k)) % 12


def kept(posterior: BetaPosterior) -> dict[str, Any]:
    """The arrays of a posterior, without leftovers from fewer duels, which are not used."""
    kept = {name: np.copy(getattr(posterior, name)) for name in vars(posterior)}
    kept["_below"][~posterior.few] = 0
    return kept


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one | other)


def pairs_of(truths: npt.NDArray[np.bool_]) -> set[tuple[int, int]]:
    """Positions of the true entries of a matrix."""
    first, second = truths.nonzero()
    return set(zip(first.tolist(), second.tolist(), strict=True))


def word(point: float) -> int:
    """The word of a point of (0, 1)."""
    return int(point * 2**53) << 11


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("won", "lost"), RESULTS)
def test_samples_are_beta_distributed(won: float, lost: float, mirrored: bool) -> None:
    posterior, size = of_pair(won, lost), 20_000
    first, second = np.full(size, int(mirrored)), np.full(size, int(not mirrored))
    sample = posterior.sample(first, second, Generator(11))
    expected = stats.beta(lost + 1, won + 1) if mirrored else stats.beta(won + 1, lost + 1)
    assert ((sample > 0) & (sample < 1)).all()
    # Kolmogorov: sqrt(n) D exceeds 2.2 with probability 2 exp(-2 * 2.2²) = 0.00013.
    cumulated, steps = expected.cdf(np.sort(sample)), np.arange(size + 1) / size
    distance = max((steps[1:] - cumulated).max(), (cumulated - steps[:-1]).max())
    assert distance < 2.2 / size**0.5
    # Four standard errors; that of a variance is sqrt((kurtosis - 1) / n) of it.
    mean, variance, kurtosis = (float(one) for one in expected.stats("mvk"))
    assert abs(sample.mean() - mean) < 4 * (variance / size) ** 0.5
    assert abs(sample.var() / variance - 1) < 4 * ((kurtosis + 2) / size) ** 0.5


def test_one_word_decision_has_exact_probability() -> None:
    """After p wins in n duels, P(θ > 1/2) = P(at most p heads in n + 1 coin tosses)."""
    pair, decided = (np.array([0, 0]), np.array([1, 1])), 0
    for n in range(64):
        for won in range(n + 1):
            chance = Fraction(
                sum(math.comb(n + 1, heads) for heads in range(won + 1)), 2 ** (n + 1)
            )
            by_scipy = float(betainc(n - won + 1, won + 1, 0.5))  # 1 - I_{1/2}(p + 1, q + 1)
            assert abs(float(chance) - by_scipy) < 1e-15
            words = chance * 2**64
            assert words.denominator == 1
            # i is better for all words below this bound, and for no others.
            script = Scripted(int(words) - 1, int(words))
            assert of_pair(won, n - won).better(*pair, script).tolist() == [True, False]
            decided += 1
    assert decided == 64 * 65 / 2


def test_one_word_decision_for_few_duels_without_halves() -> None:
    counts = WinCounts(5)
    posterior = BetaPosterior(counts)
    assert posterior.few.tolist() == np.triu(np.ones((5, 5)), k=1).astype(bool).tolist()
    assert not posterior.many.any()
    results = {(0, 1): (63, 0), (0, 2): (40, 24), (3, 1): (2.5, 0.5), (4, 3): (31, 32)}
    for (first, second), (won, lost) in results.items():
        add(counts, first, second, won, lost)
        posterior.refresh(first, second)
    many = {(0, 2), (2, 0), (1, 3), (3, 1)}
    assert pairs_of(posterior.many) == many
    assert np.array_equal(posterior.few, np.triu(~posterior.many, k=1))
    counts.add_one(1, 3, 0.5)
    posterior.refresh(1, 3)
    assert posterior.few[1, 3], "two ties add up to whole wins"
    # 3 wins and 1 loss: at least 2 of 5 coins show heads, in 26 of 32 cases.
    arms = np.array([1]), np.array([3])
    assert posterior.better(*arms, Scripted(6 * 2**59 - 1)).item()
    assert not posterior.better(*arms, Scripted(6 * 2**59)).item()


def test_one_word_per_pair() -> None:
    posterior, generator = of_many(), Generator(4)
    first, second = posterior.few.nonzero()
    assert len(first) > 10
    runs = 4_000
    shares = np.mean([posterior.better(first, second, generator) for _ in range(runs)], axis=0)
    won, lost = posterior._wins[first, second], posterior._wins[second, first]
    chances = betainc(lost + 1, won + 1, 0.5)
    # Four standard errors.
    assert (abs(shares - chances) < 4 * np.sqrt(chances * (1 - chances) / runs) + 1e-9).all()
    other = Generator(4)
    other.words(len(first) * runs)
    assert generator.state_dict() == other.state_dict()


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 40, 128, 129, 300])
def test_scalar_and_array_paths_give_equal_samples(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, samples, states = of_many(), [], []
    # Nothing, as usual, and all that can be done one by one.
    for few in (0, beta._FEW_SAMPLES, beta.MANY_SAMPLES):
        monkeypatch.setattr(beta, "_FEW_SAMPLES", few)
        generator = Generator(5)
        samples.append([posterior.sample(*some_pairs(k, s), generator).tolist() for s in range(30)])
        states.append(generator.state_dict())
    assert samples[0] == samples[1] == samples[2]
    assert states[0] == states[1] == states[2]


def test_sixteen_samples_usually_take_scalar_path(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, at_once = of_many(), []
    array_operations = BetaPosterior._at_once

    def recording(self: BetaPosterior, first: Any, second: Any, words: Words) -> Any:
        at_once.append(len(first))
        return array_operations(self, first, second, words)

    monkeypatch.setattr(BetaPosterior, "_at_once", recording)
    posterior.sample(*some_pairs(16, 1), Generator(2))
    assert at_once == []
    posterior.sample(*some_pairs(17, 1), Generator(2))
    assert at_once == [17]


@pytest.mark.parametrize(("won", "lost"), RESULTS)
def test_shortcut_without_logarithms_agrees_with_exact_test(won: float, lost: float) -> None:
    posterior, rng = of_pair(won, lost), random.Random(8)
    m, peak = posterior._mode.item(0, 1), posterior._peak.item(0, 1)
    width = posterior._width.item(0, 1)
    answers = {True: 0, False: 0}
    for _ in range(3_000):
        x = m + width * rng.choice([1, 1e-2, 1e-4]) * rng.uniform(-1, 1)
        if not 0 < x < 1:
            continue
        density = won * math.log(x) + lost * math.log1p(-x) - peak
        # The edge of the region, and points at all distances from it.
        u = math.exp(density / 2) * (
            1 + rng.choice([0, 1e-12, 1e-8, 1e-6, 1e-5, 0.1, 1]) * (rng.uniform(-1, 1))
        )
        if 0 < u < 1:
            inside = 2 * ln(u) <= won * ln(x) + lost * ln(1 - x) - peak
            assert beta.in_region(u, x, won, lost, m, peak) == inside
            answers[inside] += 1
    assert answers[True] > 500
    assert answers[False] > 500 or not won + lost


def test_block_has_four_points_unless_many_samples() -> None:
    outside, inside = (0.25, 0.75), (0.75, 0.75)
    # Of 131 samples two are found, then one, then all, by the last of their points.
    points = [inside, *[outside] * 129, inside, *[outside] * 128, inside]
    points += [outside, outside, outside, inside] * 128
    script = Scripted(*(word(point) for uv in points for point in uv))
    zeros, ones = np.zeros(131, dtype=np.int64), np.ones(131, dtype=np.int64)
    assert of_pair(0, 0).sample(zeros, ones, script) == pytest.approx(0.5 + 0.25 / 0.75)
    assert script.requested == [2 * 131, 2 * 129, 8 * 128]
    assert script.left == []


@pytest.mark.parametrize(("won", "lost"), RESULTS)
def test_acceptance_rate_above_one_half(won: float, lost: float) -> None:
    posterior, rng, size = of_pair(won, lost), np.random.RandomState(2), 10_000
    words = rng.randint(0, 2**64, size=2 * size, dtype=np.uint64)
    zeros, ones = np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.int64)
    share = (posterior._at_once(zeros, ones, words) > 0).mean()
    # Four standard errors are 0.02.
    assert share > 0.5 - 0.02
    if won == lost > 100:
        # As of a normal distribution, whose region is sqrt(π e) / 4 of its box.
        assert share == pytest.approx((math.pi * math.e) ** 0.5 / 4, abs=0.02)


@pytest.mark.parametrize("k", [1, 20])
def test_sample_uses_first_accepted_point(k: int) -> None:
    """Of an unseen pair: u from 0 to 1, v from -1/2 to 1/2, and 1/2 + v / u is from 0 to 1."""
    posterior = of_pair(0, 0)
    outside, inside, later = (0.25, 0.75), (0.75, 0.75), (1.0 - 2**-53, 0.5)
    blocks = [
        [outside, outside, inside, later],
        [outside, outside, outside, outside],
        [later, inside, inside, inside],
    ][: min(k, 3)]
    blocks += [[inside] * 4] * (k - len(blocks))
    again = [[outside, inside, later, later]] if k > 1 else []
    script = Scripted(*(word(point) for block in blocks + again for uv in block for point in uv))
    chances = posterior.sample(np.zeros(k, dtype=int), np.ones(k, dtype=int), script)
    expected = [0.5 + 0.25 / 0.75] * k
    if k > 1:
        expected[2] = 0.5
    assert chances == pytest.approx(expected, abs=1e-15)
    assert script.left == []


def test_empty_sample_takes_no_word() -> None:
    none = np.empty(0, dtype=np.int64)
    assert len(of_many().sample(none, none, Scripted())) == 0
    assert len(of_many().better(none, none, Scripted())) == 0


@pytest.mark.parametrize("words", [[0, 0], [2**64 - 1, 0], [0, 2**64 - 1], [2**64 - 1] * 2])
def test_extreme_words_give_probabilities_between_zero_and_one(words: list[int]) -> None:
    rng = random.Random(1)
    for won, lost in RESULTS:
        script = Scripted(*words, *(rng.getrandbits(64) for _ in range(398)))
        [chance] = of_pair(won, lost).sample(np.array([0]), np.array([1]), script)
        assert 0 < chance < 1


@pytest.mark.parametrize(("won", "lost"), RESULTS)
def test_swapped_pair_is_mirrored(won: float, lost: float) -> None:
    """Of points with the opposite v."""
    posterior, rng = of_pair(won, lost), random.Random(1)
    words = [rng.getrandbits(64) for _ in range(800)]
    opposite = [2**64 - 1 - word if v % 2 else word for v, word in enumerate(words)]
    zeros, ones = np.zeros(40, dtype=np.int64), np.ones(40, dtype=np.int64)
    chances = posterior.sample(zeros, ones, Scripted(*words))
    mirrored = posterior.sample(ones, zeros, Scripted(*opposite))
    spread = posterior._width.item(0, 1)
    assert mirrored == pytest.approx(1 - chances, rel=0, abs=1e-9 * spread + 1e-15)


def test_single_batch_and_full_refreshes_are_equal() -> None:
    """For any order of the duels and of the arms of a pair."""
    rng, duels = random.Random(6), []
    for _ in range(150):
        first, second = rng.sample(range(6), k=2)
        duels.append((first, second, rng.choice([0, 0.5, 1]), rng.choice([1, 1, 5, 40])))
    one_by_one, other_order = WinCounts(6), WinCounts(6)
    in_turn, at_once = BetaPosterior(one_by_one), BetaPosterior(other_order)
    back, few = 0, in_turn.few.copy()
    for first, second, first_wins, count in duels:
        one_by_one.add_one(first, second, first_wins, count)
        in_turn.refresh(first, second)
        assert np.array_equal(in_turn.few, np.triu(~in_turn.many, k=1))
        back += int((in_turn.few & ~few).any())
        few = in_turn.few.copy()
    assert back > 3, "two ties add up to whole wins"
    rng.shuffle(duels)
    for first, second, first_wins, count in duels:
        other_order.add_one(second, first, 1 - first_wins, count)
    at_once.refresh_many(
        np.array([second for _, second, _, _ in duels] + [2]),
        np.array([first for first, _, _, _ in duels] + [2]),
    )
    rebuilt = BetaPosterior(other_order)
    assert same(kept(in_turn), kept(at_once))
    assert same(kept(in_turn), kept(rebuilt))
    rows, columns = (~np.eye(6, dtype=bool)).nonzero()
    samples = [
        one.sample(rows, columns, Generator(3)).tolist() for one in (in_turn, at_once, rebuilt)
    ]
    assert samples[0] == samples[1] == samples[2]


def test_self_pair_needs_no_refresh() -> None:
    posterior = of_many()
    before = kept(posterior)
    posterior.refresh(3, 3)
    posterior.refresh_many(np.array([3, 0]), np.array([3, 0]))
    assert same(before, kept(posterior))


def test_refresh_affects_only_its_pair() -> None:
    counts = WinCounts(3)
    posterior = BetaPosterior(counts)
    add(counts, 0, 1, 100, 20)
    add(counts, 1, 2, 100, 20)
    before = kept(posterior)
    posterior.refresh(1, 0)
    after = kept(posterior)
    for name in ("_mode", "_peak", "_lower", "_width", "many"):
        assert pairs_of(before[name] != after[name]) == {(0, 1), (1, 0)}, name
    posterior.refresh(2, 1)
    assert same(kept(posterior), kept(BetaPosterior(counts)))
