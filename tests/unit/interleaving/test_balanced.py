"""Balanced interleaving: its two lists, its comparison, and its bias."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving.balanced import credit, interleave
from streamduel.interleaving.base import Interleaved, contested
from tests.unit.interleaving.textbook import balanced, click_count, examples

rankings = st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=7)


class Coin:
    """A coin with a planned result."""

    def __init__(self, side: bool) -> None:
        self._sides = [side]

    def getrandbits(self, k: int, /) -> int:
        assert k == 1
        return int(self._sides.pop())


def both(list_a: list[int], list_b: list[int], length: int) -> list[Interleaved[int]]:
    return [interleave(list_a, list_b, length, Coin(side)) for side in (True, False)]


@examples
@given(list_a=rankings, list_b=rankings, length=st.integers(0, 14))
def test_the_lists_are_those_of_the_definition(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    for shown, a_first in zip(both(list_a, list_b, length), (True, False), strict=True):
        textbook = balanced(list_a, list_b, a_first)
        assert shown.docs[: len(textbook)] == textbook[:length]


@examples
@given(list_a=rankings, list_b=rankings, length=st.integers(1, 14))
def test_the_upper_documents_of_both_are_in_the_list(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    for docs, _ in both(list_a, list_b, length):
        for k in range(1, len(docs) // 2 + 1):
            assert {*list_a[:k], *list_b[:k]} <= set(docs[: 2 * k])


def test_identical_rankings_are_shown_without_teams() -> None:
    for shown in both([1, 2, 3], [1, 2, 3], 3):
        assert shown == ([1, 2, 3], [None] * 3)


def test_a_document_is_of_the_side_that_has_it_higher() -> None:
    # Once 4 is shown, the first ranking has nothing to put against 5; with the other coin, the
    # second has nothing against 4.
    first, second = both([1, 2, 3, 4], [2, 3, 1, 5], 5)
    assert first == ([1, 2, 3, 4, 5], ["a", "b", "b", "a", None])
    assert second == ([2, 1, 3, 5, 4], ["b", "a", "b", "b", None])


def test_documents_of_one_ranking_alone_have_no_team() -> None:
    first, second = both([1], [2, 3, 4], 4)
    assert first == ([1, 2, 3, 4], ["a", None, None, None])
    assert second == ([2, 1, 3, 4], ["b", "a", None, None])


def by_definition(
    list_a: Sequence[int], list_b: Sequence[int], docs: Sequence[int], ranks: Sequence[int]
) -> float:
    """The definition of Chapelle et al. 2012."""
    if not ranks:
        return 0.5
    lowest = docs[max(ranks)]
    k = min(j for j in range(1, len(docs) + 1) if lowest in list_a[:j] or lowest in list_b[:j])
    h_a = sum(docs[rank] in list_a[:k] for rank in ranks)
    h_b = sum(docs[rank] in list_b[:k] for rank in ranks)
    return 0.5 if h_a == h_b else float(h_a > h_b)


@examples
@given(list_a=rankings, list_b=rankings, data=st.data())
def test_the_credit_equals_the_definition(
    list_a: list[int], list_b: list[int], data: st.DataObject
) -> None:
    for docs, _ in both(list_a, list_b, 14):
        upper = contested(list_a, list_b, docs)
        ranks = data.draw(st.lists(st.integers(0, upper - 1), max_size=5))
        expected = by_definition(list_a, list_b, docs, ranks)
        assert credit(list_a, list_b, docs, ranks) == expected
        below = list(range(upper, len(docs)))  # of no team
        assert credit(list_a, list_b, docs, below + ranks + below) == expected
        assert credit(list_b, list_a, docs, ranks) == 1 - expected


@examples
@given(list_a=rankings, list_b=rankings, length=st.integers(1, 14))
def test_with_one_click_counting_by_team_agrees(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    for docs, teams in both(list_a, list_b, length):
        for rank in range(len(docs)):
            assert click_count(teams, [rank]) == credit(list_a, list_b, docs, [rank])


def test_with_several_clicks_counting_by_team_may_differ() -> None:
    # Down to 3, which the second ranking has at rank 2, either ranking has two of the clicks.
    docs, teams = interleave([1, 2, 3], [2, 3, 1], 3, Coin(True))
    assert credit([1, 2, 3], [2, 3, 1], docs, [0, 1, 2]) == 0.5
    assert click_count(teams, [0, 1, 2]) == 0.0


def test_random_clicks_favour_one_side() -> None:
    """The known flaw: 1 is the only document that the first ranking has higher."""
    list_a, list_b = [1, 2, 3], [2, 3, 1]
    lists = both(list_a, list_b, 3)
    assert [docs for docs, _ in lists] == [[1, 2, 3], [2, 1, 3]]
    one = [credit(list_a, list_b, docs, [rank]) for docs, _ in lists for rank in range(3)]
    assert sum(one) / len(one) == pytest.approx(1 / 3)
    two = [
        credit(list_a, list_b, docs, ranks)
        for docs, _ in lists
        for ranks in combinations(range(3), 2)
    ]
    assert sum(two) / len(two) == pytest.approx(1 / 3)
    by_team = [click_count(teams, [rank]) for _, teams in lists for rank in range(3)]
    assert sum(by_team) / len(by_team) == pytest.approx(1 / 3)


def test_one_bit_decides() -> None:
    rng, other = random.Random(4), random.Random(4)
    interleave([1, 2, 3], [3, 2, 1], 3, rng)
    other.getrandbits(1)
    assert rng.getstate() == other.getstate()


@pytest.mark.parametrize(
    ("docs", "sentence"),
    [
        ([1, 7], r"^docs must come from the rankings \(found 7, which is in neither\)\.$"),
        ([1, 2, 1], r"^docs must have each document once \(found 1 at ranks 0 and 2\)\.$"),
    ],
)
def test_an_impossible_list_is_refused(docs: list[int], sentence: str) -> None:
    with pytest.raises(InterleavingError, match=sentence):
        credit([1, 2], [2, 3], docs, [0])


@pytest.mark.parametrize("rank", [2, -1])
def test_a_rank_outside_the_list_is_an_error(rank: int) -> None:
    with pytest.raises(IndexError):
        credit([1, 2], [2, 3], [1, 2], [0, rank])
