"""Team draft: complete, in order, fair, and clear about mistakes."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.interleaving.team_draft import Interleaved, interleave

rankings = st.lists(st.integers(0, 12), unique=True, max_size=10)


def test_identical_lists_stay_as_they_are() -> None:
    docs = [f"d{rank}" for rank in range(7)]
    for seed in range(20):
        shown = interleave(docs, docs, 10, random.Random(seed))
        assert shown.docs == docs
        assert abs(shown.teams.count("a") - shown.teams.count("b")) == 1
        assert None not in shown.teams


def test_disjoint_lists_alternate_by_round() -> None:
    for seed in range(20):
        shown = interleave([1, 2, 3], [4, 5, 6], 6, random.Random(seed))
        for rank in (0, 2, 4):
            assert set(shown.teams[rank : rank + 2]) == {"a", "b"}
        assert [d for d in shown.docs if d < 4] == [1, 2, 3]
        assert [d for d in shown.docs if d > 3] == [4, 5, 6]


def test_what_only_one_side_has_is_nobodys() -> None:
    assert interleave([], ["x", "y"], 5, random.Random(1)) == (["x", "y"], [None, None])
    assert interleave(["x"], [], 5, random.Random(1)) == (["x"], [None])
    shown = interleave([1], [2, 3, 4], 5, random.Random(1))
    assert sorted(shown.docs[:2]) == [1, 2]
    assert shown.docs[2:] == [3, 4]
    assert set(shown.teams[:2]) == {"a", "b"}
    assert shown.teams[2:] == [None, None]


def test_a_round_that_only_one_side_could_finish_counts_for_nobody() -> None:
    # Whoever is first shows 1; only b has anything for the second pick.
    for seed in range(10):
        assert interleave([1], [1, 2], 5, random.Random(seed)) == ([1, 2], [None, None])


def test_nothing_to_show() -> None:
    assert interleave([], [], 5, random.Random(1)) == ([], [])
    assert interleave([1, 2], [3], 0, random.Random(1)) == ([], [])


@given(list_a=rankings, list_b=rankings, length=st.integers(0, 14), seed=st.integers(0, 1000))
def test_every_list_is_a_merge_of_both(
    list_a: list[int], list_b: list[int], length: int, seed: int
) -> None:
    docs, teams = interleave(list_a, list_b, length, random.Random(seed))
    assert len(docs) == len(teams) == min(length, len({*list_a, *list_b}))
    assert len(set(docs)) == len(docs)
    assert abs(teams.count("a") - teams.count("b")) <= 1
    for team, ranking in (("a", list_a), ("b", list_b)):
        shown: set[int] = set()
        for doc, whose in zip(docs, teams, strict=True):
            if whose == team:  # it is the topmost that was not shown yet
                assert doc == next(each for each in ranking if each not in shown)
            shown.add(doc)


class Bits:
    """Coins that fall as they are told."""

    def __init__(self, pattern: int) -> None:
        self._pattern = pattern

    def getrandbits(self, k: int, /) -> int:
        bit, self._pattern = self._pattern & 1, self._pattern >> 1
        return bit


@given(list_a=rankings, list_b=rankings, length=st.integers(1, 8))
def test_each_rank_is_as_often_of_one_team_as_of_the_other(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    # All ways in which the coins can fall, which are equally likely.
    leads: Counter[int] = Counter()
    for pattern in range(2**8):
        teams = interleave(list_a, list_b, length, Bits(pattern)).teams
        for rank, team in enumerate(teams):
            leads[rank] += (team == "a") - (team == "b")
    assert not any(leads.values())


def test_the_seed_decides_and_nothing_else() -> None:
    up, down = list(range(20)), list(range(20, 0, -1))
    one, same = (interleave(up, down, 10, random.Random(5)) for _ in range(2))
    assert one == same
    shown = {tuple(interleave(up, down, 10, random.Random(seed)).teams) for seed in range(50)}
    assert len(shown) > 9


def test_the_arguments_stay_as_they_are() -> None:
    list_a, list_b = [1, 2, 3], [3, 1, 2]
    shown = interleave(list_a, list_b, 3, random.Random(1))
    shown.docs.append(9)
    assert (list_a, list_b) == ([1, 2, 3], [3, 1, 2])
    assert isinstance(shown, Interleaved)


def test_any_hashable_id_will_do() -> None:
    shown = interleave([("q", 1), ("q", 2)], [("q", 2), ("q", 3)], 3, random.Random(1))
    assert set(shown.docs) == {("q", 1), ("q", 2), ("q", 3)}


@pytest.mark.parametrize(
    ("list_a", "list_b", "length", "sentence"),
    [
        (
            ["x", "y", "x"], ["z"], 3,
            r"^list_a must have each document once \(found 'x' at ranks 0 and 2\)\.$",
        ),
        (["x"], ["z", "z"], 3, r"^list_b must have each document once \(found 'z' at ranks 0 and"),
        (["x"], ["z"], -1, r"^the length of an interleaved list must be at least 0 \(found -1\)"),
    ],
)  # fmt: skip
def test_mistakes_are_named(
    list_a: list[str], list_b: list[str], length: int, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        interleave(list_a, list_b, length, random.Random(1))
