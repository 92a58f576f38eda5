"""The marginalised credit against its definition: all assignments, one after the other."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.interleaving.credit import Shown, click_count, on_ranks, probabilistic
from streamduel.interleaving.credit.team_chances import MAX_CLICKS
from streamduel.interleaving.probabilistic import chances, expected_credit, interleave
from tests.unit.interleaving import textbook

rankings = st.lists(st.integers(0, 5), unique=True, max_size=4)


def sign(share: Fraction) -> float:
    """The winner, of a share of a win."""
    return 0.5 if share == Fraction(1, 2) else float(share > Fraction(1, 2))


def by_assignment(likely: list[Fraction | None], ranks: list[int]) -> float:
    """Who more likely has more clicks."""
    share = Fraction(0)
    for sides in product("ab", repeat=len(likely)):
        weight = Fraction(1)
        for side, chance in zip(sides, likely, strict=True):
            at_all = Fraction(1, 2) if chance is None else chance
            weight *= at_all if side == "a" else 1 - at_all
        teams = [None if it is None else side for side, it in zip(sides, likely, strict=True)]
        share += weight * Fraction(textbook.click_count(teams, ranks))
    return sign(share)


@textbook.examples
@given(
    likely=st.lists(
        st.one_of(st.none(), st.fractions(0, 1, max_denominator=30)), min_size=1, max_size=6
    ),
    data=st.data(),
)
def test_the_outcome_is_the_winner_over_all_assignments(
    likely: list[Fraction | None], data: st.DataObject
) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(likely) - 1), max_size=6))
    shown = Shown(
        [None if each is None else "a" for each in likely],
        [None if each is None else float(each) for each in likely],
    )
    assert probabilistic(shown, on_ranks(ranks)) == by_assignment(likely, ranks)


@settings(textbook.examples, max_examples=60)
@given(list_a=rankings, list_b=rankings, data=st.data())
def test_the_outcome_is_the_sign_of_the_expected_credit(
    list_a: list[int], list_b: list[int], data: st.DataObject
) -> None:
    rng = random.Random(data.draw(st.integers(0, 99)))
    docs, teams = interleave(list_a, list_b, data.draw(st.integers(1, 5)), rng)
    ranks = data.draw(st.lists(st.integers(0, len(docs) - 1), max_size=4)) if docs else []
    shown = Shown(teams, chances(list_a, list_b, docs))
    outcome = probabilistic(shown, on_ranks(ranks))
    assert outcome == sign(textbook.marginal(list_a, list_b, docs, ranks))
    share = expected_credit(list_a, list_b, docs, ranks)
    assert outcome == (0.5 if abs(share - 0.5) < 1e-12 else float(share > 0.5))


@pytest.mark.parametrize(
    ("likely", "ranks", "outcome"),
    [
        ([0.9, 0.4, 0.4], [0], 1.0),
        ([0.9, 0.4, 0.4], [1], 0.0),
        ([0.9, 0.4, 0.4], [0, 1], 1.0),  # 0.36 against 0.06
        ([0.9, 0.4, 0.4], [0, 1, 1], 0.0),  # one document twice is of one side twice: 0.4 to 0.6
        ([0.9, 0.4, 0.4], [0, 1, 2], 1.0),  # 0.592
        ([0.5, 0.5], [0, 1], 0.5),
        ([0.3, 0.7], [0, 1], 0.5),  # 0.21 each
        ([0.1, 0.2, 0.7, 0.9, 0.8, 0.3], [5, 4, 3, 2, 1, 0], 0.5),
        ([0.5 + 1e-13], [0], 0.5),  # closer to a tie than rounding can tell
        ([0.5 + 1e-11], [0], 1.0),
        ([None, 0.4], [0, 0, 1], 0.0),
        ([None], [0], 0.5),
        ([1, 0], [0, 1, 1], 0.0),
    ],
)
def test_outcomes_by_hand(likely: list[float | None], ranks: list[int], outcome: float) -> None:
    for teams in ("a", "b", None):  # the teams do not matter
        shown = Shown([teams] * len(likely), likely)
        assert probabilistic(shown, on_ranks(ranks)) == outcome


@textbook.examples
@given(teams=st.text("ab-", min_size=1, max_size=8), data=st.data())
def test_with_certain_chances_clicks_are_counted(teams: str, data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(0, len(teams) - 1), max_size=6))
    plain = Shown([None if team == "-" else team for team in teams])
    sure = plain._replace(chances=[{"a": 1.0, "b": 0.0, "-": None}[team] for team in teams])
    counted = click_count(plain, on_ranks(ranks))
    assert probabilistic(sure, on_ranks(ranks)) == counted
    assert probabilistic(plain, on_ranks(ranks)) == counted  # as does a log without chances


def test_with_more_than_100_clicks_the_teams_decide() -> None:
    shown = Shown(["a"] * 200, [0.1] * 200)
    assert probabilistic(shown, on_ranks(range(MAX_CLICKS))) == 0.0
    assert probabilistic(shown, on_ranks(range(MAX_CLICKS + 1))) == 1.0


def test_the_outcome_is_biased_and_the_expected_credit_is_not() -> None:
    """The known flaw, exactly: over all lists of two rankings, and one click anywhere."""
    up, down = [1, 2, 3, 4, 5], [2, 3, 4, 5, 1]
    wins: dict[float, float] = {0.0: 0.0, 0.5: 0.0, 1.0: 0.0}
    shares = []
    for (docs, teams), chance in textbook.probabilistic(up, down, 5).items():
        shown = Shown(teams, chances(up, down, docs))
        for rank in range(5):
            wins[probabilistic(shown, on_ranks([rank]))] += float(chance) / 5
            shares.append((chance / 5, expected_credit(up, down, docs, [rank])))
    assert textbook.mean(shares) == pytest.approx(0.5)
    assert wins == pytest.approx({0.0: 0.50, 0.5: 0.20, 1.0: 0.30}, abs=0.005)
