"""Team draft of many rankers: each rank equally likely of each, and duels of an impression."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving.base import Multileaved, Team
from streamduel.interleaving.team_draft_multileaving import Duel, duels_of, multileave
from tests.unit.interleaving.textbook import Shown, check_sample, click_count, examples
from tests.unit.interleaving.textbook import multileave as defined

RANKINGS = [[1, 2, 3, 4], [2, 1, 4, 3], [5, 1, 2, 6]]


@pytest.mark.parametrize(
    ("rankings", "length"),
    [(RANKINGS, 4), (RANKINGS, 2), ([[1, 2, 3], [3, 2, 1]], 3), ([[1, 2]] * 5, 2)],
)
def test_lists_and_teams_are_as_frequent_as_defined(rankings: list[list[int]], length: int) -> None:
    rng = random.Random(3)

    def draw() -> Shown:
        docs, teams = multileave(rankings, length, rng)
        return tuple(docs), tuple(teams)

    check_sample(draw, defined(rankings, length), 20_000)


@examples
@given(
    rankings=st.lists(
        st.lists(st.integers(0, 12), unique=True, max_size=8), min_size=2, max_size=5
    ),
    length=st.integers(0, 14),
    seed=st.integers(0, 1000),
)
def test_every_list_is_a_merge_of_all(rankings: list[list[int]], length: int, seed: int) -> None:
    docs, teams = multileave(rankings, length, random.Random(seed))
    assert len(docs) == len(teams) == min(length, len(set().union(*rankings)))
    assert len(set(docs)) == len(docs)
    fair = min(len(docs), *map(len, rankings))
    assert None not in teams[:fair]
    assert set(teams[fair:]) <= {None}
    sizes = [teams.count(number) for number in range(len(rankings))]
    assert max(sizes) - min(sizes) <= 1
    for rank, (document, number) in enumerate(zip(docs, teams, strict=True)):
        above = docs[:rank]
        tops = [next((each for each in ranking if each not in above), None) for ranking in rankings]
        assert document in tops if number is None else document == tops[number]


def test_each_rank_is_equally_often_of_each_team() -> None:
    # The count of a team at a rank in n lists has variance n · 1/4 · 3/4; five deviations.
    four = [*RANKINGS, [9, 8, 7, 1]]
    rng, n = random.Random(12), 4000
    counts: Counter[tuple[int, int | None]] = Counter()
    for _ in range(n):
        counts.update(enumerate(multileave(four, 4, rng).teams))
    assert counts.keys() == {(rank, team) for rank in range(4) for team in range(4)}
    for count in counts.values():
        assert abs(count - n / 4) <= 5 * (n * 3 / 16) ** 0.5


def test_short_rankings_do_not_affect_the_ranks_above_their_end() -> None:
    docs, teams = multileave([[1], [2, 3, 4], [5, 6]], 6, random.Random(1))
    assert len(docs) == 6
    assert teams[0] is not None
    assert teams[1:] == [None] * 5


@examples
@given(teams=st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=8), data=st.data())
def test_each_pair_is_credited_independently(teams: list[int | None], data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(teams) - 1), max_size=6))
    duels = duels_of(3, teams, ranks)
    assert [(duel.first, duel.second) for duel in duels] == [(0, 1), (0, 2), (1, 2)]
    for first, second, first_wins in duels:
        sides: dict[int | None, Team] = {first: "a", second: "b"}
        assert first_wins == click_count([sides.get(team) for team in teams], ranks)


def test_without_clicks_all_pairs_tie() -> None:
    assert duels_of(2, [0, 1], []) == [Duel(0, 1, 0.5)]
    assert isinstance(multileave(RANKINGS, 3, random.Random(1)), Multileaved)


def test_invalid_arguments_are_refused() -> None:
    rng = random.Random(1)
    with pytest.raises(
        InterleavingError, match=r"^rankings must be of two rankers at least \(found 1\)\.$"
    ):
        multileave([[1]], 1, rng)
    twice = r"^rankings\[2\] must have each document once \(found 1 at ranks 0 and 1\)\.$"
    with pytest.raises(InterleavingError, match=twice):
        multileave([[1], [2], [1, 1]], 1, rng)
    for rank in (2, -1):
        with pytest.raises(IndexError):
            duels_of(2, [0, 1], [rank])
