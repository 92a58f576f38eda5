"""Credit functions by hand-worked examples."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import InterleavingError
from streamduel.interleaving.credit import (
    CREDITS,
    Click,
    Shown,
    any_click,
    click_count,
    create,
    first_click,
    last_click,
    on_ranks,
    position_debiased,
    weighted,
)
from tests.unit.interleaving import textbook

A, B, TIE = 1.0, 0.0, 0.5


def shown(teams: str) -> Shown:
    return Shown([None if team == "-" else team for team in teams])


@pytest.mark.parametrize(
    ("teams", "ranks", "counted", "anybody", "first", "last"),
    [
        ("abba", [0], A, A, A, A),
        ("abba", [2], B, B, B, B),
        ("abba", [0, 3], A, A, A, A),
        ("abba", [0, 1], TIE, TIE, A, B),
        ("abba", [1, 0, 2], B, TIE, B, B),
        ("abba", [0, 0, 1], A, TIE, A, B),
        ("abba", [2, 1, 3], B, TIE, B, A),
        ("abba", [], TIE, TIE, TIE, TIE),
        ("", [], TIE, TIE, TIE, TIE),
        ("--", [0, 1, 1], TIE, TIE, TIE, TIE),
        ("a--b", [1, 2, 3], B, B, B, B),
        ("a--b", [1, 0, 3, 2], TIE, TIE, A, B),
    ],
)
def test_clicks_are_counted_or_ordered(
    teams: str, ranks: list[int], counted: float, anybody: float, first: float, last: float
) -> None:
    clicks = on_ranks(ranks)
    assert click_count(shown(teams), clicks) == counted
    assert any_click(shown(teams), clicks) == anybody
    assert first_click(shown(teams), clicks) == first
    assert last_click(shown(teams), clicks) == last


@textbook.examples
@given(teams=st.text("ab-", min_size=1, max_size=9), data=st.data())
def test_counting_equals_the_definition(teams: str, data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(teams) - 1), max_size=8))
    outcome = click_count(shown(teams), on_ranks(ranks))
    assert outcome == textbook.click_count(shown(teams).teams, ranks)
    assert any_click(shown(teams), on_ranks(ranks)) in {0.5, outcome}


@pytest.mark.parametrize(
    ("times", "first", "last"),
    [
        ([5, 7, 9], A, A),
        ([9, 7, 5], A, A),
        ([7, 5, 9], B, A),
        ([7, 9, 5], A, B),
        ([5, 5, 5], A, A),  # in the order in which they came
        ([7, 5, 7], B, A),
        ([5, 7, 7], A, A),
        ([5, 9, None], A, A),  # not all are known: the order in which they came
        ([None, 5, None], A, A),
        ([0, 0, 1], A, A),
    ],
)
def test_times_decide_which_click_is_first_and_last(
    times: list[int | None], first: float, last: float
) -> None:
    clicks = [Click(rank, ts=ts) for rank, ts in zip([0, 1, 3], times, strict=True)]
    assert first_click(shown("abba"), clicks) == first
    assert last_click(shown("abba"), clicks) == last


@pytest.mark.parametrize(
    ("weights", "clicks", "outcome"),
    [
        ({"cart": 3, "click": 1}, [(0, "cart"), (1, "click"), (2, "click")], A),
        ({"cart": 3, "click": 1}, [(0, "cart"), *[(1, "click")] * 3], TIE),
        ({"cart": 3, "click": 1}, [(0, "cart"), *[(1, "click")] * 4], B),
        ({"cart": 3}, [(1, "click"), (2, "click"), (3, "cart")], A),  # without weight
        ({"cart": 3}, [(1, "click"), (2, "Cart")], TIE),
        ({"click": 1, "hide": -2}, [(0, "click"), (3, "hide")], B),
        ({"click": 0}, [(0, "click")], TIE),
        ({"x": 0.1, "y": 0.2, "z": 0.3}, [(0, "x"), (3, "y"), (1, "z")], TIE),
        ({"x": 0.1, "y": 0.2, "z": 0.3000000000000001}, [(0, "x"), (3, "y"), (1, "z")], B),
        ({"x": 1000, "y": 1e-300}, [(0, "x"), (0, "y"), (1, "x")], A),
        ({"x": 1000, "y": -1000}, [(0, "x"), (1, "y")], A),
    ],
)
def test_each_action_has_its_weight(
    weights: dict[str, float], clicks: list[tuple[int, str]], outcome: float
) -> None:
    credit = weighted(weights)
    assert credit(shown("abba"), [Click(*click) for click in clicks]) == outcome
    assert credit(shown("baab"), [Click(*click) for click in clicks]) == 1 - outcome


@textbook.examples
@given(
    weights=st.lists(st.floats(-1000, 1000, allow_nan=False), min_size=3, max_size=3),
    ranks=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=9),
)
def test_weights_are_summed_exactly(weights: list[float], ranks: list[tuple[int, int]]) -> None:
    named = {str(number): weight for number, weight in enumerate(weights)}
    exact = [*(Fraction(repr(weight)) for weight in weights), Fraction(0)]
    lead = sum({0: 1, 1: -1}.get(rank, 0) * exact[number] for rank, number in ranks)
    clicks = [Click(rank, str(number)) for rank, number in ranks]
    assert weighted(named)(shown("ab---"), clicks) == (lead > 0) + (lead == 0) / 2


@pytest.mark.parametrize(
    ("parameters", "ranks", "outcome"),
    [
        # With eta = 1 a click at rank r is worth r + 1; teams are abbab.
        ({"eta": 1}, [0, 1], B),  # 1 against 2
        ({"eta": 1}, [0, 3, 4], TIE),  # 1 + 4 against 5
        ({"eta": 1}, [3, 2], A),  # 4 against 3
        ({"eta": 1}, [0, 0, 1], TIE),  # each click counts
        ({"eta": 1}, [0, 0, 0, 1], A),
        ({"eta": 2}, [0, 3, 4], B),  # 1 + 16 against 25
        ({"eta": 0.5}, [0, 1, 3], A),  # 1 + 2 against 1.41
        ({"eta": 0.5}, [0, 1], B),
        ({"eta": 0}, [0, 4], TIE),  # as click_count
        ({"propensities": [1, 0.5]}, [0, 0, 1], TIE),
        ({"propensities": [1, 0.5]}, [3, 4], TIE),  # the last one's, for all below
        ({"propensities": [1, 0.5]}, [0, 0, 4], TIE),
        ({"propensities": [0.2, 0.3, 0.6]}, [0, 3, 1], A),  # 5 + 1.67 against 3.33
        ({"propensities": [0.3, 0.1]}, [0, 0, 0, 1], TIE),  # 10 against 10, not 10.000000000000002
        ({"propensities": [1e-300, 1]}, [0, 1], A),
        ({"propensities": [1.0]}, [0, 1, 2], B),
    ],
)
def test_clicks_weigh_the_inverse_propensity_of_their_rank(
    parameters: dict[str, Any], ranks: list[int], outcome: float
) -> None:
    credit = position_debiased(**parameters)
    assert credit(shown("abbab"), on_ranks(ranks)) == outcome
    assert credit(shown("baaba"), on_ranks(ranks)) == 1 - outcome


@pytest.mark.parametrize("eta", [0, 0.3, 0.7, 1, 1.5, 2, 10])
def test_the_power_law_has_the_documented_propensities(eta: float) -> None:
    """Worths can be weighed against each other: n clicks above, one below."""
    credit = position_debiased(eta=eta)
    for low in (1, 5, 50, 99):
        worth = (low + 1) ** eta
        shown_, many = Shown(["a", *"b" * 120]), int(worth * 1.001)
        if many < 2000:
            assert credit(shown_, on_ranks([low, *[0] * (many + 1)])) == A
        assert credit(shown_, on_ranks([low, *[0] * min(int(worth * 0.999), 2000)])) != A
        assert (
            credit(Shown([*"a" * 100, *"b" * 20]), on_ranks([99, 119])) == TIE
        )  # beyond the 100th


def test_a_single_click_wins_at_any_rank() -> None:
    for rank, eta in product(range(5), (0, 1, 3)):
        assert position_debiased(eta=eta)(shown("aaaaa"), on_ranks([rank])) == A


@pytest.mark.parametrize("clicks", [1, 2])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("any_click", {}),
        ("first_click", {}),
        ("last_click", {}),
        ("weighted", {"weights": {"click": 1}}),
        ("position_debiased", {"eta": 1}),
        ("position_debiased", {"propensities": [0.3, 1]}),
        ("probabilistic", {}),
    ],
)
def test_random_clicks_on_team_draft_favour_neither_side(
    name: str, parameters: dict[str, Any], clicks: int
) -> None:
    """Exact: over all lists of these rankings, and all clicks on so many ranks in any order."""
    credit = create(name, **parameters)
    outcomes: dict[float, Fraction] = {A: Fraction(0), B: Fraction(0), TIE: Fraction(0)}
    for (_, teams), chance in textbook.team_draft([1, 2, 3, 4], [3, 5, 1, 6], 4).items():
        for ranks in permutations(range(4), clicks):
            outcomes[credit(Shown(teams), on_ranks(ranks))] += chance
    assert outcomes[A] == outcomes[B] > 0


@pytest.mark.parametrize(
    ("name", "parameters", "sentence"),
    [
        ("click_cuont", {}, "unknown credit function 'click_cuont'; did you mean 'click_count'?"),
        ("zzz", {}, f"unknown credit function 'zzz'; there are {', '.join(CREDITS)}."),
        ("any_click", {"eta": 1},
         "credit function 'any_click' has no parameter 'eta'; it has none."),
        ("position_debiased", {"weights": {}},
         "credit function 'position_debiased' has no parameter 'weights'; it has 'propensities', "
         "'eta'."),
        ("weighted", {}, "credit function 'weighted' needs 'weights'."),
        ("weighted", {"weights": {}}, "weights must have one action at least (found none)."),
        ("weighted", {"weights": {"x": 1, "y": 1001}},
         "weights must be from -1000 to 1000 (found 1001 for 'y')."),
        ("weighted", {"weights": {"x": float("nan")}},
         "weights must be from -1000 to 1000 (found nan for 'x')."),
        ("weighted", {"weights": {"a": "x"}},
         "weights must be from -1000 to 1000 (found 'x' for 'a')."),
        ("weighted", {"weights": {"a": None}},
         "weights must be from -1000 to 1000 (found None for 'a')."),
        ("weighted", {"weights": ["cart"]},
         "weights must be by action, as {'click': 1} (found ['cart'])."),
        ("position_debiased", {},
         "'position_debiased' needs either 'propensities' or 'eta' (found neither)."),
        ("position_debiased", {"eta": 0, "propensities": []},
         "'position_debiased' needs either 'propensities' or 'eta' (found both)."),
        ("position_debiased", {"propensities": []},
         "propensities must have one rank at least (found none)."),
        ("position_debiased", {"propensities": [1, 0]},
         "propensities must be above 0 and at most 1 (found 0 at rank 1)."),
        ("position_debiased", {"propensities": [1.5]},
         "propensities must be above 0 and at most 1 (found 1.5 at rank 0)."),
        ("position_debiased", {"propensities": [float("nan")]},
         "propensities must be above 0 and at most 1 (found nan at rank 0)."),
        ("position_debiased", {"propensities": [1, "x"]},
         "propensities must be above 0 and at most 1 (found 'x' at rank 1)."),
        ("position_debiased", {"eta": "x"}, "eta must be from 0 to 10 (found 'x')."),
        ("position_debiased", {"eta": [1]}, "eta must be from 0 to 10 (found [1])."),
        ("position_debiased", {"eta": -0.1}, "eta must be from 0 to 10 (found -0.1)."),
        ("position_debiased", {"eta": float("nan")}, "eta must be from 0 to 10 (found nan)."),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(name: str, parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InterleavingError) as refused:
        create(name, **parameters)
    assert str(refused.value) == sentence
