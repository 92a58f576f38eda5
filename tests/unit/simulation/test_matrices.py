"""Generated matrices have the properties of their kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from streamduel.errors import PreferenceError
from streamduel.policies.base.generator import Generator
from streamduel.preference.matrix import check
from streamduel.preference.winners import condorcet_winner, copeland_winners, wins_over
from streamduel.simulation import matrices


def test_bradley_terry_is_a_ratio_of_strengths() -> None:
    utilities = [0.0, 1.5, -2.0, 0.3]
    strength = np.exp(utilities)
    expected = strength[:, None] / (strength[:, None] + strength)
    assert matrices.bradley_terry(utilities) == pytest.approx(expected, abs=1e-15)


def test_gaussian_is_the_larger_of_two_noisy_utilities() -> None:
    utilities = np.array([0.0, 1.5, -2.0, 0.3])
    expected = norm.cdf((utilities[:, None] - utilities) / math.sqrt(2))
    assert matrices.gaussian(utilities.tolist()) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("name", matrices.KINDS)
@pytest.mark.parametrize("n_arms", [3, 8, 31])
def test_every_kind_is_a_preference_matrix(name: str, n_arms: int) -> None:
    p = matrices.generate(name, n_arms, Generator(5))
    assert p.shape == (n_arms, n_arms)
    assert (check(p) == p).all()


@pytest.mark.parametrize("name", ["bradley-terry", "gaussian"])
def test_utilities_order_the_arms(name: str) -> None:
    p = matrices.generate(name, 12, Generator(5))
    assert sorted(wins_over(p).tolist()) == list(range(12))


def test_random_utilities_are_standard_normal() -> None:
    drawn = np.array(matrices.random_utilities(4_000, Generator(1)))
    assert abs(drawn.mean()) < 4 / 4_000**0.5
    assert abs(drawn.var() - 1) < 4 * (2 / 4_000) ** 0.5


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_a_random_condorcet_matrix_has_its_winner_and_its_gap(seed: int) -> None:
    p = matrices.random_condorcet(7, Generator(seed), gap=0.1)
    assert condorcet_winner(p) == 0
    lead = np.abs(p - 0.5)[np.triu_indices(7, k=1)]
    assert lead.min() >= 0.1 - 1e-15
    assert lead.max() <= matrices.MAX_GAP


def test_other_arms_of_a_random_condorcet_matrix_have_no_order() -> None:
    p = matrices.random_condorcet(60, Generator(1))
    ahead = (p[1:, 1:] > 0.5)[np.triu_indices(59, k=1)]
    assert abs(ahead.mean() - 0.5) < 4 * 0.5 / len(ahead) ** 0.5


@pytest.mark.parametrize(("n_arms", "beaten"), [(3, 1), (4, 1), (5, 2), (8, 3)])
def test_in_a_cycle_all_are_equal(n_arms: int, beaten: int) -> None:
    p = matrices.cyclic(n_arms, gap=0.2)
    assert condorcet_winner(p) is None
    assert copeland_winners(p).tolist() == list(range(n_arms))
    assert wins_over(p).tolist() == [beaten] * n_arms
    assert p[0, 1] == 0.7


def test_matrices_depend_on_the_seed_only() -> None:
    one, same, other = (matrices.generate("gaussian", 5, Generator(seed)) for seed in (1, 1, 2))
    assert (one == same).all()
    assert not (one == other).all()


@pytest.mark.parametrize(
    ("name", "n_arms", "gap", "sentence"),
    [
        ("gausian", 5, 0.1, r"must be one of .* \(found 'gausian'; did you mean 'gaussian'\?\)"),
        ("gaussian", 1, 0.1, r"number of arms must be from 2 to 4000 \(found 1\)"),
        ("condorcet", 5000, 0.1, r"number of arms must be from 2 to 4000 \(found 5000\)"),
        ("cyclic", 2, 0.1, r"number of arms must be from 3 to 4000 \(found 2\)"),
        ("cyclic", 5, 0.0, r"gap must be greater than 0 and at most 0.35 \(found 0.0\)"),
        ("condorcet", 5, math.nan, r"gap must be greater than 0 .* \(found nan\)"),
    ],
)
def test_a_mistake_is_named(name: str, n_arms: int, gap: float, sentence: str) -> None:
    with pytest.raises(PreferenceError, match=sentence):
        matrices.generate(name, n_arms, Generator(0), gap)


def test_utilities_must_be_numbers() -> None:
    with pytest.raises(PreferenceError, match="at least 2 finite numbers"):
        matrices.bradley_terry([1.0, math.inf])
    with pytest.raises(PreferenceError, match="at least 2 finite numbers"):
        matrices.gaussian([1.0])
