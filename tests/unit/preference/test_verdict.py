"""The numbers that people are shown: champion, progress, arms that are out, pairs."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import (
    Winner,
    confidence,
    intervals,
    log_evidence,
    sure_against,
)
from streamduel.preference.verdict import LEVEL, Verdict
from tests.unit.preference.calls import calls

ORDER: Floats = np.array([[0, 290, 580, 95], [210, 0, 70, 60], [420, 30, 0, 75], [5, 40, 25, 0.0]])
NAMES = ("w", "x", "y", "z")


def verdict(wins: Floats, champion: int = 0, seeks: Winner = "condorcet") -> Verdict:
    return Verdict.of(wins, np.zeros_like(wins), champion, seeks)


@pytest.mark.parametrize("n_arms", [2, 5])
@pytest.mark.parametrize("seeks", ["condorcet", "copeland"])
def test_no_duels_decide_nothing(n_arms: int, seeks: Winner) -> None:
    found = verdict(np.zeros((n_arms, n_arms)), seeks=seeks)
    assert not found.decided
    assert (found.confidence, found.progress) == (0.0, 0.0)
    assert found.evidence.tolist() == [0.0] * n_arms
    assert not found.out.any()


def test_even_duels_decide_nothing() -> None:
    assert not verdict(np.array([[0, 2974.0], [2974, 0]])).decided


def test_lost_duels_decide_nothing() -> None:
    assert not verdict(ORDER, champion=3).decided


@pytest.mark.parametrize("seeks", ["condorcet", "copeland"])
def test_progress_rises_before_confidence(seeks: Winner) -> None:
    found = verdict(np.array([[0, 60, 0], [40, 0, 0], [0, 0, 0.0]]), seeks=seeks)
    assert found.decided
    assert found.confidence == 0
    assert 0 < found.progress < 0.5


@pytest.mark.parametrize("seeks", ["condorcet", "copeland"])
@pytest.mark.parametrize("scale", [0.1, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 5])
def test_progress_is_full_when_confidence_is_enough(scale: float, seeks: Winner) -> None:
    found = verdict(np.round(ORDER * scale), seeks=seeks)
    assert (found.progress == 1) == (found.confidence >= LEVEL)
    assert found.confidence == confidence(np.round(ORDER * scale), 0, seeks)


def test_progress_counts_a_sure_rival_once() -> None:
    # Two of three rivals are far beyond what is needed; the third has no evidence.
    wins = ORDER.copy()
    wins[0, 1] = wins[1, 0] = 250
    wins[0, 2], wins[2, 0] = 900, 100
    assert verdict(wins).progress == pytest.approx(2 / 3)


def test_least_evidence_of_rivals_decides() -> None:
    against = sure_against(ORDER, 0, "copeland")
    assert against.shape == (4,)
    assert confidence(ORDER, 0, "copeland") == max(0, 1 - 12 * np.exp(-against[1:].min()))


def test_evidence_of_all_pairs_is_computed_once() -> None:
    counted = calls(lambda: verdict(ORDER, seeks="copeland"))
    assert counted[log_evidence.__code__] == 1


def test_losers_are_out_and_champion_is_not() -> None:
    wins = ORDER.copy()
    wins[0, 1], wins[1, 0] = 280, 220
    found = verdict(wins)
    assert found.required == pytest.approx(np.log(20))
    assert found.out.tolist() == [False, False, True, True]
    assert found.evidence[0] == 0
    assert 0 < found.evidence[1] < found.required


def test_pairs_have_one_order_and_whole_duels() -> None:
    rows = list(verdict(ORDER).pairs(NAMES))
    assert [(row.a, row.b) for row in rows] == [
        ("w", "x"), ("w", "y"), ("w", "z"), ("x", "y"), ("x", "z"), ("y", "z"),
    ]  # fmt: skip
    first = rows[0]
    assert (first.duels, first.wins_a, first.wins_b, first.ties) == (500, 290, 210, 0)
    assert first.win_rate == 0.58
    assert all(isinstance(each, int) for each in (first.duels, first.wins_a, first.ties))


def test_intervals_hold_together() -> None:
    lower, upper = intervals(ORDER, 1 - LEVEL)
    found = verdict(ORDER)
    for row in found.pairs(NAMES):
        i, j = NAMES.index(row.a), NAMES.index(row.b)
        assert row.interval == (lower[i, j], upper[i, j])
        assert found.against(i, j) == (row.win_rate, *row.interval)
    assert found.against(1, 0).low == pytest.approx(1 - upper[0, 1])


def test_some_arms_have_the_intervals_of_all() -> None:
    found = verdict(ORDER)
    some = list(found.pairs(NAMES, among=[3, 1, 0]))
    assert [(row.a, row.b) for row in some] == [("z", "x"), ("z", "w"), ("x", "w")]
    lower, upper = found.bounds([3, 1, 0])
    assert some[1].interval == (lower[0, 2], upper[0, 2])
    whole = {(row.a, row.b): row for row in found.pairs(NAMES)}
    assert some[1].wins_b == whole["w", "z"].wins_a
    assert some[1].interval[0] == pytest.approx(1 - whole["w", "z"].interval[1])


def test_ties_are_told_from_wins() -> None:
    wins, ties = np.array([[0, 40.0], [30, 0]]), np.array([[0, 20.0], [20, 0]])
    row = next(Verdict.of(wins, ties, 0, "condorcet").pairs(("w", "x")))
    assert (row.duels, row.wins_a, row.wins_b, row.ties) == (70, 30, 20, 20)
    assert row.win_rate == 4 / 7


def test_ties_that_nobody_counted_keep_the_sum() -> None:
    # Three ties, of which one was counted.
    wins, ties = np.array([[0, 41.5], [31.5, 0]]), np.array([[0, 1.0], [1, 0]])
    row = next(Verdict.of(wins, ties, 0, "condorcet").pairs(("w", "x")))
    assert (row.duels, row.wins_a, row.wins_b, row.ties) == (73, 41, 31, 1)
    row = next(Verdict.of(wins, np.zeros((2, 2)), 0, "condorcet").pairs(("w", "x")))
    assert (row.wins_a, row.wins_b, row.ties) == (41, 31, 1)


def test_pair_that_never_met() -> None:
    found = verdict(np.zeros((2, 2)))
    row = next(found.pairs(("w", "x")))
    assert (row.duels, row.win_rate, row.interval) == (0, None, (0.0, 1.0))
    assert found.against(0, 1) == (None, 0.0, 1.0)


def test_level_is_that_of_everything() -> None:
    strict = Verdict.of(ORDER, np.zeros((4, 4)), 0, "condorcet", level=0.999)
    usual = verdict(ORDER)
    assert strict.required == pytest.approx(np.log(1000))
    assert strict.progress < usual.progress
    assert strict.against(0, 1).low < usual.against(0, 1).low


CYCLE: Floats = np.array([[0, 90, 10, 90], [10, 0, 90, 90], [90, 10, 0, 90], [10, 10, 10, 0.0]])


def test_a_cycle_has_no_winner_and_an_unsurpassed_arm() -> None:
    found = verdict(CYCLE)
    assert found.no_winner
    assert found.confidence == 0
    assert found.unsurpassed > 0.99
    assert verdict(CYCLE, champion=3).unsurpassed == 0


def test_a_winner_is_no_cycle() -> None:
    assert not verdict(ORDER).no_winner
