"""Credit functions by hand-worked examples."""

from __future__ import annotations

import pytest

from streamduel.interleaving.credit import CREDITS, click_count

A, B, TIE = 1.0, 0.0, 0.5


@pytest.mark.parametrize(
    ("teams", "ranks", "credit"),
    [
        ("abba", [0], A),
        ("abba", [2], B),
        ("abba", [0, 3], A),
        ("abba", [0, 1], TIE),
        ("abba", [1, 0, 2], B),
        ("abba", [0, 0, 1], A),
        ("abba", [], TIE),
        ("", [], TIE),
        ("--", [0, 1, 1], TIE),
        ("a--b", [1, 2, 3], B),
    ],
)
def test_the_side_with_more_clicks_wins(teams: str, ranks: list[int], credit: float) -> None:
    assert click_count([None if team == "-" else team for team in teams], ranks) == credit


@pytest.mark.parametrize("credit", CREDITS.values(), ids=CREDITS)
@pytest.mark.parametrize("ranks", [[], [0], [1, 2], [0, 1, 2, 3], [3, 3, 0]])
def test_sides_are_treated_alike(credit: object, ranks: list[int]) -> None:
    assert callable(credit)
    assert credit(list("abab"), ranks) == 1 - credit(list("baba"), ranks)


@pytest.mark.parametrize("credit", CREDITS.values(), ids=CREDITS)
def test_a_rank_outside_the_list_is_an_error(credit: object) -> None:
    assert callable(credit)
    with pytest.raises(IndexError):
        credit(list("ab"), [0, 2])
