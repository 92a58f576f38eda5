"""Optimised interleaving: allowed lists only, unbiased at each rank, and as sensitive as can be."""

from __future__ import annotations

import random
import sys
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving.optimised import (
    MAX_LENGTH,
    Credit,
    Mixture,
    _sensitivity,
    allowed_lists,
    interleave,
    most_sensitive,
    solve,
    worth_of,
)
from streamduel.preference.arrays import Floats
from tests.unit.interleaving.textbook import allowed, examples

rankings = st.lists(st.integers(0, 9), unique=True, max_size=6)
credits_ = st.sampled_from(get_args(Credit))


@examples
@given(
    list_a=st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=4),
    list_b=st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=4),
)
def test_the_allowed_lists_equal_the_definition(list_a: list[int], list_b: list[int]) -> None:
    ranks = min(len(list_a), len(list_b))
    found = allowed_lists(list_a, list_b, ranks)
    assert len(found) == len(set(found)) <= 2**ranks
    assert set(found) == allowed(list_a, list_b, ranks)


def test_the_number_of_lists_is_bounded() -> None:
    far = solve(range(20), range(20, 40), MAX_LENGTH)
    assert len(far.rankings) == 2**MAX_LENGTH
    longer = r"^the length of an optimised interleaved list must be at most 10 \(found 11\); its"
    with pytest.raises(InterleavingError, match=longer):
        solve([1], [2], MAX_LENGTH + 1)


def arrays(mixture: Mixture[Any]) -> tuple[Floats, Floats, Floats]:
    """Probabilities (n,), worths (n, ranks) and sensitivity (n,)."""
    worths = np.array(mixture.worths).reshape(len(mixture.rankings), -1)
    return np.array(mixture.probabilities), worths, np.array(mixture.sensitivity)


@settings(examples, max_examples=150)
@given(list_a=rankings, list_b=rankings, length=st.integers(0, 10), credit=credits_)
def test_the_mixture_is_unbiased_at_each_rank(
    list_a: list[int], list_b: list[int], length: int, credit: Credit
) -> None:
    mixture = solve(list_a, list_b, length, credit=credit)
    probabilities, worths_of_all, _ = arrays(mixture)
    assert probabilities.min() >= 0
    assert probabilities.sum() == pytest.approx(1)
    at_rank = probabilities @ worths_of_all
    # A user who reads k documents, for each k, and clicks one of them.
    assert np.cumsum(at_rank) == pytest.approx(np.zeros(len(at_rank)), abs=1e-8)
    lower = max(len(list_a), len(list_b)) + 1
    for ranking, worths in zip(mixture.rankings, mixture.worths, strict=True):
        for document, worth in zip(ranking, worths, strict=True):
            x = list_a.index(document) + 1 if document in list_a else lower
            y = list_b.index(document) + 1 if document in list_b else lower
            assert worth == pytest.approx(y - x if credit == "rank_difference" else 1 / x - 1 / y)
            clicked = ranking.index(document)
            one = worth_of(list_a, list_b, ranking, [clicked], credit=credit)
            assert one == pytest.approx(worth)


def best_corner(worths: Floats, sensitivity: Floats) -> float:
    """The best of all corners of the programme: where as few lists as constraints are shown."""
    constraints = np.vstack((worths.T, np.ones(len(worths))))
    target = np.append(np.zeros(worths.shape[1]), 1.0)
    most = 0.0
    for size in range(1, min(len(constraints), len(worths)) + 1):
        for shown in map(list, combinations(range(len(worths)), size)):
            shares, *_ = np.linalg.lstsq(constraints[:, shown], target, rcond=None)
            fits = np.allclose(constraints[:, shown] @ shares, target, atol=1e-9)
            if fits and shares.min() >= -1e-9:
                most = max(most, float(shares @ sensitivity[shown]))
    return most


@settings(examples, max_examples=40)
@given(
    list_a=st.permutations(range(4)),
    list_b=st.lists(st.integers(0, 5), unique=True, min_size=3, max_size=4),
    credit=credits_,
)
def test_no_unbiased_mixture_is_more_sensitive(
    list_a: list[int], list_b: list[int], credit: Credit
) -> None:
    mixture = solve(list_a, list_b, 4, credit=credit)
    probabilities, worths, sensitivity = arrays(mixture)
    assert float(probabilities @ sensitivity) == pytest.approx(best_corner(worths, sensitivity))


def test_probabilities_by_hand() -> None:
    """Rankings abcd and bdca, with the difference of ranks: a is worth 3, b -1, c 0 and d -2.

    At the first rank 3 p(a) = p(b): 25 % have a on top. After two ranks ab and ba are worth 2 and
    bd is worth -3: 2 (25 % + p(ba)) = 3 p(bd), so that 35 % begin with ba and 40 % with bd. Of two
    lists that begin alike, the one with d above c tells more, as d is worth something.
    """
    mixture = solve("abcd", "bdca", 4, credit="rank_difference")
    shares = dict(zip(map("".join, mixture.rankings), mixture.probabilities, strict=True))
    assert shares == pytest.approx(
        {"abcd": 0, "abdc": 0.25, "bacd": 0, "badc": 0.35, "bdac": 0.4, "bdca": 0}, abs=1e-9
    )
    # The worth of a is 3/4, of b -1/2, of c 0 and of d -1/4.
    mixture = solve("abcd", "bdca", 4)
    shares = dict(zip(map("".join, mixture.rankings), mixture.probabilities, strict=True))
    assert shares == pytest.approx(
        {"abcd": 0, "abdc": 0.4, "bacd": 0, "badc": 0.35, "bdac": 0.25, "bdca": 0}, abs=1e-9
    )


def test_sensitivity_by_hand() -> None:
    # Attention is 6/11, 3/11 and 2/11.
    worths = [[2.0, -1.0, -9.0], [1.0, 0.0, -1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    found = [_sensitivity(row) for row in worths]
    decided = 8 / 11
    assert found[0] == pytest.approx(-6 / 11 * np.log2(6 / 11) - 5 / 11 * np.log2(5 / 11))
    assert found[1] == pytest.approx(decided * -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)))
    assert found[2:] == [0, 0]


@pytest.mark.parametrize("credit", get_args(Credit))
def test_lists_and_teams_are_drawn_with_their_probabilities(credit: Credit) -> None:
    """20,000 draws: each share within 5 standard deviations, at most 5 · sqrt(1/4 / 20000)."""
    mixture = solve([1, 2, 3, 4], [2, 5, 1, 6], 4, credit=credit)
    rng, n, band = random.Random(8), 20_000, 5 * (0.25 / 20_000) ** 0.5
    drawn = [mixture.draw(rng) for _ in range(n)]
    for ranking, share in zip(mixture.rankings, mixture.probabilities, strict=True):
        found = sum(tuple(docs) == ranking for docs, _ in drawn) / n
        assert found == pytest.approx(share, abs=band)
    most = np.abs(arrays(mixture)[1]).max()
    for rank in range(4):
        sides = [(docs[rank], {"a": 1, "b": -1, None: 0}[teams[rank]]) for docs, teams in drawn]
        for document in {document for document, _ in sides}:
            leads = [side for shown, side in sides if shown == document]
            worth = worth_of([1, 2, 3, 4], [2, 5, 1, 6], [document], [0], credit=credit) / most
            assert np.mean(leads) == pytest.approx(worth, abs=5 * (1 / len(leads)) ** 0.5)
            assert min(leads) * worth >= 0 <= max(leads) * worth


def test_random_clicks_are_unbiased_on_average_only() -> None:
    """The known flaw: the first ranking has one document higher, far higher, in every list."""
    mixture = solve([1, 2, 3, 4], [2, 3, 4, 1], 4)
    probabilities, worths, _ = arrays(mixture)
    assert ((worths > 0).sum(axis=1) == 1).all()
    assert ((worths < 0).sum(axis=1) == 3).all()
    click = probabilities @ worths.mean(axis=1)
    assert click == pytest.approx(0, abs=1e-9)


def test_ranks_below_the_shorter_ranking_have_no_team() -> None:
    for seed in range(20):
        docs, teams = interleave([1, 2], [3, 4, 5, 6], 6, random.Random(seed))
        assert sorted(docs) == [1, 2, 3, 4, 5, 6]
        assert [each for each in docs if each > 2] == [3, 4, 5, 6]
        assert teams[2:] == [None] * 4
    docs = [3, 1, 4, 2, 5, 6]
    assert worth_of([1, 2], [3, 4, 5, 6], docs, [0]) == 1 / 5 - 1
    assert worth_of([1, 2], [3, 4, 5, 6], docs, [2, 3, 4, 5]) == 0


def test_rankings_that_agree_load_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert interleave([1, 2, 3], [1, 2, 3], 3, random.Random(1)) == ([1, 2, 3], [None] * 3)


def test_without_scipy_every_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    needs = r"^optimised interleaving needs scipy; install it with 'pip install scipy'\.$"
    for list_b in ([1, 2, 3], [2, 1, 3]):
        with pytest.raises(InterleavingError, match=needs):
            interleave([1, 2, 3], list_b, 3, random.Random(1))


def test_worths_of_clicks_are_summed() -> None:
    docs = ["a", "b", "d", "c"]
    assert worth_of("abcd", "bdca", docs, []) == 0
    assert worth_of("abcd", "bdca", docs, [0, 1, 1]) == 0.75 - 0.5 - 0.5
    assert worth_of("abcd", "bdca", docs, [0, 2], credit="rank_difference") == 3 - 2


def test_a_long_and_a_short_ranking_may_have_no_solution() -> None:
    """Of every list, the worths of the four ranks, 3, 3, 3 and 16 times, are above 0 in sum.

    So is their mean in any mixture, in which each must be 0.
    """
    long, short = range(1, 15), [2, 4, 5, 3]
    for docs in allowed_lists(long, short, 4):
        ranks = [worth_of(long, short, docs, [r], credit="rank_difference") for r in range(4)]
        assert 3 * sum(ranks[:3]) + 16 * ranks[3] > 0
    with pytest.raises(InterleavingError, match="no unbiased interleaving"):
        solve(long, short, 4, credit="rank_difference")
    assert solve(long, short, 4).probabilities


def test_invalid_arguments_are_refused() -> None:
    unbiased = r"^these rankings have no unbiased interleaving \(found: .+\); use team"
    with pytest.raises(InterleavingError, match=unbiased):
        most_sensitive([[1.0], [2.0]], [0.5, 0.5])
    unknown = (
        r"^credit must be 'inverse_rank' or 'rank_difference' \(found 'inverse'; did you mean"
        r" 'inverse_rank'\?\)\.$"
    )
    with pytest.raises(InterleavingError, match=unknown):
        solve([1], [2], 1, credit="inverse")  # type: ignore[arg-type]
    with pytest.raises(InterleavingError, match="found 9, which is in neither"):
        worth_of([1], [2], [9], [0])
    for rank in (2, -1):
        with pytest.raises(IndexError):
            worth_of([1], [2], [1, 2], [rank])
