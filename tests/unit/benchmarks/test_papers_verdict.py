from __future__ import annotations

import doctest
import math

import pytest

from benchmarks.papers import matrices, subsets, verdict
from benchmarks.papers.verdict import (
    Check,
    Measured,
    Standing,
    above,
    below,
    is_true,
    mean,
    mean_ratio,
    ratio,
    share,
    within,
)


@pytest.mark.parametrize("module", [matrices, subsets, verdict])
def test_examples(module: object) -> None:
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        (["holds"], "reproduced"),
        (["holds", "holds"], "reproduced"),
        (["holds", "undecided"], "partly"),
        (["holds", "fails"], "partly"),
        (["undecided"], "not reproduced"),
        (["fails", "undecided"], "not reproduced"),
        (["fails"], "not reproduced"),
        ([], "not reproduced"),
    ],
)
def test_verdict(standings: list[Standing], expected: str) -> None:
    assert verdict.verdict([Check("", "", each) for each in standings]) == expected


@pytest.mark.parametrize(
    ("value", "error", "is_below", "is_above"),
    [
        (0.8, 0.05, "holds", "fails"),
        (0.95, 0.05, "undecided", "undecided"),
        (1.0, 0.0, "fails", "fails"),
        (1.05, 0.05, "undecided", "undecided"),
        (1.2, 0.05, "fails", "holds"),
        (0.5, 0.0, "holds", "fails"),
    ],
)
def test_below_and_above(value: float, error: float, is_below: str, is_above: str) -> None:
    found = Measured(value, error)
    assert below("", found, 1).standing == is_below
    assert above("", found, 1).standing == is_above


@pytest.mark.parametrize(
    ("value", "error", "standing"),
    [
        (7, 0, "holds"),
        (5, 3, "holds"),
        (4.5, 0.3, "undecided"),
        (4.3, 0.3, "fails"),
        (10.5, 0.3, "undecided"),
        (11, 0.3, "fails"),
    ],
)
def test_within(value: float, error: float, standing: str) -> None:
    assert within("", Measured(value, error), 5, 10).standing == standing


def test_results_are_shown_with_their_error() -> None:
    assert above("", Measured(1234.56, 7.891), 5, 1).found == "1,234.6 ± 7.9"
    assert below("", Measured(2.0), 5).found == "2.00"
    assert is_true("", "three", True).standing == "holds"
    assert is_true("", "three", False) == Check("", "three", "fails")


def test_mean_and_its_error() -> None:
    assert mean([3.0]) == Measured(3.0, 0.0)
    assert mean([1.0, 3.0]) == Measured(2.0, 1.0)


def test_ratio_adds_relative_errors_in_quadrature() -> None:
    found = ratio(Measured(10, 0.3), Measured(5, 0.2))
    assert found.value == 2
    assert found.error == pytest.approx(2 * math.hypot(0.03, 0.04))


def test_ratio_over_several_problems_weighs_them_alike() -> None:
    large = [Measured(200, 1), Measured(20, 1), Measured(2, 1)]
    small = [Measured(100, 1), Measured(10, 1), Measured(1, 1)]
    found = mean_ratio(large, small)
    assert found.value == pytest.approx(2)
    assert found.error == pytest.approx(0, abs=1e-12)
    alone = mean_ratio(large[:1], small[:1])
    assert alone == ratio(large[0], small[0])


def test_share() -> None:
    found = share(25, 100)
    assert found.value == 0.25
    assert found.error == pytest.approx(0.0433, abs=1e-4)
