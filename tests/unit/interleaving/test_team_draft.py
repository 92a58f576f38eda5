"""Team-draft interleaving."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving import Interleaved
from streamduel.interleaving.team_draft import interleave
from tests.unit.interleaving.textbook import Shown, check_sample, click_count, examples, team_draft

rankings = st.lists(st.integers(0, 12), unique=True, max_size=10)


def test_identical_rankings_are_shown_unchanged() -> None:
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


def test_documents_of_one_side_alone_have_no_team() -> None:
    assert interleave([], ["x", "y"], 5, random.Random(1)) == (["x", "y"], [None, None])
    assert interleave(["x"], [], 5, random.Random(1)) == (["x"], [None])
    shown = interleave([1], [2, 3, 4], 5, random.Random(1))
    assert sorted(shown.docs[:2]) == [1, 2]
    assert shown.docs[2:] == [3, 4]
    assert set(shown.teams[:2]) == {"a", "b"}
    assert shown.teams[2:] == [None, None]


def test_a_round_that_one_side_alone_can_finish_has_no_teams() -> None:
    # The first side shows 1; only b has a document for the second pick.
    for seed in range(10):
        assert interleave([1], [1, 2], 5, random.Random(seed)) == ([1, 2], [None, None])


def test_nothing_to_show() -> None:
    assert interleave([], [], 5, random.Random(1)) == ([], [])
    assert interleave([1, 2], [3], 0, random.Random(1)) == ([], [])


@examples
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
    """Coins with planned results."""

    def __init__(self, pattern: int) -> None:
        self._pattern = pattern

    def getrandbits(self, k: int, /) -> int:
        bit, self._pattern = self._pattern & 1, self._pattern >> 1
        return bit


def test_the_last_place_has_a_team_if_both_sides_want_the_document() -> None:
    # b has another document, but there is no room for it.
    shown = [interleave([1], [1, 2], 1, Bits(coin)) for coin in (0, 1)]
    assert shown == [([1], ["b"]), ([1], ["a"])]


@examples
@given(list_a=rankings, list_b=rankings, length=st.integers(1, 8))
def test_each_rank_is_equally_often_of_either_team(
    list_a: list[int], list_b: list[int], length: int
) -> None:
    # All ways in which the coins can fall, which are equally likely.
    leads: Counter[int] = Counter()
    for pattern in range(2**8):
        teams = interleave(list_a, list_b, length, Bits(pattern)).teams
        for rank, team in enumerate(teams):
            leads[rank] += (team == "a") - (team == "b")
    assert not any(leads.values())


@examples
@given(
    list_a=st.permutations(range(6)), list_b=st.permutations(range(2, 8)), length=st.integers(0, 6)
)
def test_lists_equal_the_definition(list_a: list[int], list_b: list[int], length: int) -> None:
    # Neither ranking runs out. Three rounds at most: all eight ways in which the coins can fall.
    found: Counter[Shown] = Counter()
    for pattern in range(8):
        docs, teams = interleave(list_a, list_b, length, Bits(pattern))
        found[tuple(docs), tuple(teams)] += 1
    defined = team_draft(list_a, list_b, length)
    assert {shown: count / 8 for shown, count in found.items()} == defined


def test_lists_and_teams_are_as_frequent_as_defined() -> None:
    rng = random.Random(9)

    def draw() -> Shown:
        docs, teams = interleave([1, 2, 3, 4], [3, 5, 1, 6], 4, rng)
        return tuple(docs), tuple(teams)

    check_sample(draw, team_draft([1, 2, 3, 4], [3, 5, 1, 6], 4), 10_000)


@pytest.mark.parametrize("length", [1, 3, 10])
def test_both_sides_pick_equally_often(length: int) -> None:
    """Over 4,000 impressions of different rankings the leads in picks have the mean 0.

    A lead is 0, 1 or -1, so that the sum of n has a variance of n at most: 5 · sqrt(4000) = 316 is
    exceeded by chance with probability 5.7e-7.
    """
    rng = random.Random(length)
    lead = 0
    for _ in range(4000):
        pool = range(rng.randrange(6, 20))
        list_a, list_b = (rng.sample(pool, rng.randrange(1, 7)) for _ in "ab")
        docs, teams = interleave(list_a, list_b, length, rng)
        assert len(docs) == min(length, len({*list_a, *list_b}))
        lead += teams.count("a") - teams.count("b")
    assert abs(lead) <= 316


@examples
@given(
    list_a=st.permutations(range(6)),
    list_b=st.permutations(range(6)),
    ranks=st.lists(st.integers(0, 4), max_size=6),
)
def test_indifferent_clicks_favour_neither_side(
    list_a: list[int], list_b: list[int], ranks: list[int]
) -> None:
    # On the same ranks, whatever stands there; exact, also for several clicks.
    outcomes = [
        click_count(interleave(list_a, list_b, 5, Bits(pattern)).teams, ranks)
        for pattern in range(8)
    ]
    assert sum(outcomes) == 4


def test_a_better_ranking_below_the_first_round_may_go_undetected() -> None:
    # The known flaw: only 3 is relevant, and the second ranking has it higher; but 3 is third in
    # every list, and of either team.
    outcomes = []
    for pattern in range(4):
        docs, teams = interleave([1, 2, 3], [2, 3, 1], 3, Bits(pattern))
        assert docs[2] == 3
        outcomes.append(click_count(teams, [2]))
    assert sum(outcomes) == 2


def test_several_clicks_may_disfavour_a_short_ranking() -> None:
    # The known flaw, with clicks on the first and the third rank. If b is first, it takes 1, a
    # takes 2 and has run out: the third has no team, and b wins. If a is first, it takes 1, b
    # takes 3, and the third is of either: a wins, or it is a tie. Each rank alone is unbiased.
    outcomes = [
        click_count(interleave([1, 2], [1, 3, 4], 4, Bits(pattern)).teams, [0, 2])
        for pattern in range(4)
    ]
    assert sum(outcomes) / 4 == 0.375


def test_the_result_depends_on_the_seed_alone() -> None:
    up, down = list(range(20)), list(range(20, 0, -1))
    one, same = (interleave(up, down, 10, random.Random(5)) for _ in range(2))
    assert one == same
    shown = {tuple(interleave(up, down, 10, random.Random(seed)).teams) for seed in range(50)}
    assert len(shown) > 9


def test_the_arguments_are_not_changed() -> None:
    list_a, list_b = [1, 2, 3], [3, 1, 2]
    shown = interleave(list_a, list_b, 3, random.Random(1))
    shown.docs.append(9)
    assert (list_a, list_b) == ([1, 2, 3], [3, 1, 2])
    assert isinstance(shown, Interleaved)


def test_any_hashable_id_is_allowed() -> None:
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
def test_invalid_arguments_are_refused(
    list_a: list[str], list_b: list[str], length: int, sentence: str
) -> None:
    with pytest.raises(InterleavingError, match=sentence):
        interleave(list_a, list_b, length, random.Random(1))
