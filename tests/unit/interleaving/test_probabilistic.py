"""Probabilistic interleaving against its definition, list by list and click by click."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving.probabilistic import expected_credit, interleave
from tests.unit.interleaving.textbook import (
    Shown,
    check_sample,
    click_count,
    examples,
    marginal,
    mean,
    probabilistic,
    softmax,
)

UP, DOWN = [1, 2, 3, 4], [3, 5, 1, 2]

rankings = st.lists(st.integers(0, 5), unique=True, max_size=4)


@pytest.mark.parametrize(
    ("list_a", "list_b", "length"),
    [
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 2, 3], [3, 2, 1], 3),
        (UP, DOWN, 3),
        ([1, 2], [3, 4], 4),
        ([1], [1, 2, 3], 3),
        ([1, 2, 3], [], 3),
    ],
)
def test_lists_and_teams_are_as_frequent_as_defined(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    rng = random.Random(11)

    def draw() -> Shown:
        docs, teams = interleave(list_a, list_b, length, rng)
        return tuple(docs), tuple(teams)

    check_sample(draw, probabilistic(list_a, list_b, length), 10_000)


def test_the_first_of_ten_documents_is_drawn_most_often() -> None:
    shares = softmax(range(1, 11), [])
    assert float(shares[1]) == pytest.approx(0.83, abs=0.01)
    assert float(shares[2]) == pytest.approx(0.10, abs=0.01)
    ten = list(range(10))
    rng = random.Random(5)
    tops = [interleave(ten, ten, 1, rng).docs[0] for _ in range(4000)]
    # Five standard deviations of a share of 4,000: 5 · sqrt(0.835 · 0.165 / 4000) = 0.029.
    assert tops.count(0) / 4000 == pytest.approx(float(shares[1]), abs=0.029)


@settings(examples, max_examples=60)
@given(list_a=rankings, list_b=rankings, data=st.data())
def test_the_credit_is_the_mean_over_all_assignments(
    list_a: list[int], list_b: list[int], data: st.DataObject
) -> None:
    length = data.draw(st.integers(1, 5))
    docs, _ = interleave(list_a, list_b, length, random.Random(data.draw(st.integers(0, 99))))
    ranks = data.draw(st.lists(st.integers(0, len(docs) - 1), max_size=4)) if docs else []
    expected = marginal(list_a, list_b, docs, ranks)
    assert expected_credit(list_a, list_b, docs, ranks) == pytest.approx(float(expected))
    assert expected_credit(list_b, list_a, docs, ranks) == pytest.approx(1 - float(expected))


@pytest.mark.parametrize("relevant", [{1}, {2, 5}, {3, 4}])
def test_expected_credit_has_the_mean_of_click_count_with_less_variance(relevant: set[int]) -> None:
    """Users click all that is relevant; exact means over all lists and teams."""
    counted, expected = [], []
    for (docs, teams), chance in probabilistic(UP, DOWN, 3).items():
        ranks = [rank for rank, document in enumerate(docs) if document in relevant]
        counted.append((chance, click_count(teams, ranks)))
        expected.append((chance, expected_credit(UP, DOWN, docs, ranks)))
    assert mean(expected) == pytest.approx(mean(counted))
    spread = [
        mean((chance, (value - mean(values)) ** 2) for chance, value in values)
        for values in (counted, expected)
    ]
    assert spread[1] < 0.9 * spread[0]


@pytest.mark.parametrize("clicks", [1, 2, 3])
@pytest.mark.parametrize(
    ("list_a", "list_b", "length"),
    [
        (UP, DOWN, 3),
        # A ranking may run out, because it draws all of its documents or the other one does.
        ([1], [2, 3, 1], 3),
        ([2, 1], [1, 2, 3, 4], 4),
        ([3, 4], [1, 2, 3], 4),
        ([1, 2], [3, 4], 4),
    ],
)
def test_random_clicks_favour_neither_side(
    list_a: list[int], list_b: list[int], length: int, clicks: int
) -> None:
    """Exact: over all lists, and all sets of so many ranks."""
    counted, expected = [], []
    for (docs, teams), chance in probabilistic(list_a, list_b, length).items():
        for ranks in combinations(range(length), clicks):
            share = chance / comb(length, clicks)
            counted.append((share, click_count(teams, ranks)))
            expected.append((share, expected_credit(list_a, list_b, docs, ranks)))
    assert mean(counted) == pytest.approx(0.5)
    assert mean(expected) == pytest.approx(0.5)


def test_it_detects_a_difference_that_team_draft_misses() -> None:
    # 3 is the only relevant document. The second ranking has it higher; in team draft, it is third
    # in every list and of either team (see there).
    up, down = [1, 2, 3], [2, 3, 1]
    by_team = [
        (chance, click_count(teams, [docs.index(3)]))
        for (docs, teams), chance in probabilistic(up, down, 3).items()
    ]
    assert mean(by_team) < 0.45


def test_the_last_of_many_documents_counts_too() -> None:
    # At the end, two documents of weights 1e-12 are left of a thousand million times as much.
    n = 10_000
    up, down = list(range(n)), [*range(n - 2), n - 1, n - 2]
    ours, theirs = Fraction(1, (n - 1) ** 3), Fraction(1, n**3)
    share = ours / (ours + theirs)
    assert expected_credit(up, down, up, [n - 2]) == pytest.approx(float(share), rel=1e-12)
    assert expected_credit(up, down, up, [n - 1]) == 0.5


def test_the_documented_bits_are_drawn() -> None:
    rng, other = random.Random(4), random.Random(4)
    interleave([1, 2, 3], [3, 2, 1], 2, rng)
    for _ in range(6):
        other.getrandbits(53)
    for _ in range(2):
        other.getrandbits(1)
    assert rng.getstate() == other.getstate()


def test_no_click_is_a_tie() -> None:
    assert expected_credit(UP, DOWN, [1, 3], []) == 0.5


def test_invalid_arguments_are_refused() -> None:
    for rank in (2, -1):
        with pytest.raises(IndexError):
            expected_credit(UP, DOWN, [1, 3], [rank])
    with pytest.raises(InterleavingError, match=r"found 9, which is in neither"):
        expected_credit(UP, DOWN, [1, 9], [0])
