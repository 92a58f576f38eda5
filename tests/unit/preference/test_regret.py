"""The four kinds of regret against their definitions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given

from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats
from streamduel.preference.regret import KINDS, regrets
from streamduel.preference.winners import condorcet_winner
from tests.unit.preference.matrices import CYCLE, EVEN, ORDER, matrices, of_upper


@given(matrices())
def test_each_kind_equals_definition(p: Floats) -> None:
    arms = range(len(p))
    score = [sum(p[i, j] > 0.5 for j in arms) / (len(p) - 1) for i in arms]
    winner = condorcet_winner(p)
    for i in arms:
        for j in arms:
            copeland = 2 * max(score) - score[i] - score[j]
            assert regrets(p, "copeland")[i, j] == pytest.approx(copeland, abs=1e-15)
            if winner is None:
                continue
            first, second = p[winner, i] - 0.5, p[winner, j] - 0.5
            assert regrets(p, "condorcet")[i, j] == (first + second) / 2
            assert regrets(p, "strong")[i, j] == first + second
            assert regrets(p, "weak")[i, j] == min(first, second)


@given(matrices())
def test_nonnegative_and_zero_for_best_arm(p: Floats) -> None:
    winner = condorcet_winner(p)
    for kind in KINDS if winner is not None else ["copeland"]:
        cost = regrets(p, kind)
        assert (cost >= 0).all()
        assert (cost == cost.T).all()
        assert cost.min() == 0
        if winner is not None:
            assert cost[winner, winner] == 0


def test_total_order() -> None:
    assert regrets(ORDER, "condorcet")[1].tolist() == [0.0625, 0.125, 0.1875, 0.25]
    assert regrets(ORDER, "strong")[1].tolist() == [0.125, 0.25, 0.375, 0.5]
    assert regrets(ORDER, "weak")[1].tolist() == [0, 0.125, 0.125, 0.125]
    assert regrets(ORDER, "copeland")[1] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3])


def test_zero_if_all_arms_are_copeland_winners() -> None:
    assert not regrets(CYCLE, "copeland").any()
    assert not regrets(EVEN, "copeland").any()


@pytest.mark.parametrize("kind", ["condorcet", "strong", "weak"])
def test_error_without_condorcet_winner_names_copeland_winners(kind: str) -> None:
    p = np.full((4, 4), 0.75)
    p[:3, :3], p[3] = CYCLE, [0.25, 0.25, 0.25, 0.5]
    expected = (
        f"The regret '{kind}' needs a Condorcet winner, an arm that beats all others (found none;"
        " Copeland winners: row 1, 2, 3); the regret 'copeland' needs none."
    )
    with pytest.raises(PreferenceError, match=f"^{re.escape(expected)}$"):
        regrets(p, kind)


def test_tied_arms_have_no_condorcet_winner() -> None:
    with pytest.raises(PreferenceError, match="Copeland winners: row 1, 2"):
        regrets(of_upper([0.5], 2), "weak")


def test_unknown_kind_rejected() -> None:
    with pytest.raises(PreferenceError, match=r"found 'stron'; did you mean 'strong'\?"):
        regrets(ORDER, "stron")
