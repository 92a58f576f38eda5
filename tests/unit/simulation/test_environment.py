"""Outcomes of a matrix are drawn as documented, word by word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import PreferenceError
from streamduel.policies.base.generator import Generator
from streamduel.simulation.environment import RESOLUTION, MatrixEnvironment
from streamduel.simulation.matrices import ARXIV


def pairs(n: int, n_arms: int = 6, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.random.RandomState(seed).randint(n_arms, size=(2, n)).astype(np.int64)
    return first, second


@given(seed=st.integers(0, 2**64), ties=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_one_by_one_is_the_same_as_all_at_once(seed: int, ties: float) -> None:
    first, second = pairs(200)
    together = MatrixEnvironment(ARXIV, ties=ties, seed=seed)
    alone = MatrixEnvironment(ARXIV, ties=ties, seed=seed)
    outcomes = together.outcomes(first, second).tolist()
    assert outcomes == [
        alone.outcome(*pair) for pair in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert together.generator.state_dict() == alone.generator.state_dict()


def test_a_duel_takes_one_word_and_an_arm_alone_none() -> None:
    first, second = pairs(500)
    environment = MatrixEnvironment(ARXIV, ties=0.2, seed=3)
    outcomes = environment.outcomes(first, second).tolist()
    words = iter((Generator(3).words(500) >> np.uint64(11)).tolist())
    for i, j, outcome in zip(first.tolist(), second.tolist(), outcomes, strict=True):
        if i == j:
            expected = 0.5
        else:
            u = next(words)
            wins, ties = u < environment.win_below[i, j], u < environment.tie_below[i, j]
            expected = 1.0 if wins else 0.5 if ties else 0.0
        assert outcome == expected
    used = Generator(3)
    used.skip(int((first != second).sum()))
    assert environment.generator.state_dict() == used.state_dict()


def test_outcomes_do_not_depend_on_the_version_of_numpy() -> None:
    first, second = pairs(24)
    outcomes = MatrixEnvironment(ARXIV, ties=0.25, seed=7).outcomes(first, second) * 2
    assert "".join(map(str, outcomes.astype(int))) == "000220200111112211110010"


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_shares_are_within_four_standard_errors(ties: float) -> None:
    n = 40_000
    environment = MatrixEnvironment(ARXIV, ties=ties, seed=11)
    for i in range(6):
        for j in range(6):
            if i != j:
                outcomes = environment.outcomes(np.full(n, i), np.full(n, j))
                won, tied = (outcomes == 1).mean(), (outcomes == 0.5).mean()
                p = (1 - ties) * ARXIV[i, j]
                assert abs(won - p) < 4 * (p * (1 - p) / n) ** 0.5
                assert abs(tied - ties) <= 4 * (ties * (1 - ties) / n) ** 0.5


@given(
    p=st.floats(0, 1), ties=st.floats(0, 1)
)  # fmt: skip
def test_thresholds_are_the_probabilities(p: float, ties: float) -> None:
    environment = MatrixEnvironment([[0.5, p], [1 - p, 0.5]], ties=ties, seed=0)
    win, tie = environment.win_below[0, 1].item(), environment.tie_below[0, 1].item()
    assert 0 <= win <= tie <= RESOLUTION
    assert win / RESOLUTION == pytest.approx((1 - ties) * p, abs=2**-51)
    assert (tie - win) / RESOLUTION == pytest.approx(ties, abs=2**-51)


@pytest.mark.parametrize("ties", [0.0, 0.1, 1 / 3])
def test_an_arm_with_probability_1_never_loses(ties: float) -> None:
    environment = MatrixEnvironment([[0.5, 1.0], [0.0, 0.5]], ties=ties, seed=0)
    assert environment.tie_below[0, 1] == RESOLUTION  # the first never loses
    assert environment.win_below[1, 0] == 0  # the second never wins


def test_without_ties_there_are_no_ties() -> None:
    environment = MatrixEnvironment(ARXIV, seed=0)
    assert (environment.win_below == environment.tie_below).all()


@pytest.mark.parametrize("ties", [-0.1, 1.1, float("nan"), "0.5", True, None])
def test_a_wrong_probability_of_ties_is_refused(ties: object) -> None:
    with pytest.raises(PreferenceError, match=r"probability of a tie must be from 0 to 1 \(found"):
        MatrixEnvironment(ARXIV, ties=ties, seed=0)  # type: ignore[arg-type]


def test_a_wrong_matrix_is_refused() -> None:
    with pytest.raises(PreferenceError, match=r"must add up to 1 within 0.001"):
        MatrixEnvironment([[0.5, 0.7], [0.4, 0.5]], seed=0)
