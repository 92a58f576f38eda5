"""Gaps of the Copeland paper against each item of its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from benchmarks.papers.copeland_gap import copeland_gap, gap_ratio, smallest_gap
from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats
from tests.unit.preference.matrices import CYCLE, EVEN, ORDER, matrices, of_upper, published


def by_definition(p: Floats) -> float:
    """Definition 3 of the paper, items 1 to 6."""
    arms = range(len(p))
    beaten = [sum(p[i, j] > 0.5 for j in arms) for i in arms]
    winners = [i for i in arms if beaten[i] == max(beaten)]
    others = [i for i in arms if i not in winners]
    winner_losses = sum(p[winners[0], j] < 0.5 for j in arms)
    candidates = [abs(p[i, j] - 0.5) for i in winners for j in others]
    for i in others:
        losses = sorted((abs(p[i, j] - 0.5) for j in arms if p[i, j] < 0.5), reverse=True)
        candidates.append(losses[winner_losses])
    return min(candidates, default=math.inf)


@given(matrices(ties=False))
def test_gap_equals_definition(p: Floats) -> None:
    least = min(abs(p[i, j] - 0.5) for i in range(len(p)) for j in range(i))
    assert smallest_gap(p) == least
    assert copeland_gap(p) == by_definition(p)
    assert gap_ratio(p) == (by_definition(p) / least) ** 2
    assert gap_ratio(p) >= 1


def test_total_order() -> None:
    assert smallest_gap(ORDER) == 0.125
    assert copeland_gap(ORDER) == 0.125


def test_no_gap_if_all_arms_win() -> None:
    assert copeland_gap(CYCLE) == math.inf
    assert gap_ratio(CYCLE) == math.inf


def test_two_arms_gap() -> None:
    assert smallest_gap(of_upper([0.25], 2)) == copeland_gap(of_upper([0.25], 2)) == 0.25


def test_tie_error_names_position() -> None:
    assert smallest_gap(EVEN) == 0
    p = of_upper([0.75, 0.75, 0.5], 3)
    for function in (copeland_gap, gap_ratio):
        with pytest.raises(PreferenceError, match=r"\(found one: row 2, column 3\)\.$"):
            function(p)


def test_published_ratio() -> None:
    # Appendix C.4 of the paper: 1,419.
    assert gap_ratio(published("MSLR_Informational_PMat.npz")) == pytest.approx(1418.8, abs=0.05)
