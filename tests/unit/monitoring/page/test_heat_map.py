"""The matrix of an experiment's page."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.monitoring.page.heat_map import MAX_SHOWN_ARMS, heat_map, ranking
from streamduel.monitoring.views import DELTA
from streamduel.preference.evidence import intervals
from tests.unit.monitoring.fold import duels
from tests.unit.monitoring.page.watched import Watched, control, counted, plain


def test_a_cell_describes_the_duels_in_words() -> None:
    watched = Watched()
    matrix = watched.fold(counted("ltr", "bm25", 700, 300)).matrix
    assert matrix.arms == ("ltr", "dense", "bm25")
    cell = matrix.rows[0].cells[2]
    lower, upper = intervals(watched.view.wins, DELTA)
    assert (cell.text, cell.shade, cell.decided) == ("70", "win4", True)
    assert plain(cell.words) == (
        f"ltr against bm25: won 700 of 1,000 duels, 70.0 %. 95 % at any time: "
        f"{100 * lower[1, 0]:.1f} % to {100 * upper[1, 0]:.1f} %. "
        f"Confidence that it is better: 99.9 %."
    )
    other = matrix.rows[2].cells[0]
    assert (other.text, other.shade, other.decided) == ("30", "lose4", True)
    assert "won 300 of 1,000 duels" in other.words
    assert "Confidence that it is worse: 99.9" in other.words


@pytest.mark.parametrize(
    ("won", "shade"),
    [(500, "even"), (509, "even"), (511, "win1"), (489, "lose1"), (535, "win2"),
     (580, "win3"), (420, "lose3"), (660, "win4"), (0, "lose4"), (1000, "win4")],
)  # fmt: skip
def test_the_colour_shows_the_distance_from_even(won: int, shade: str) -> None:
    watched = Watched()
    watched.fold(counted("ltr", "bm25", won, 1000 - won))
    cell = heat_map(watched.view, [1, 0, 2]).rows[0].cells[1]
    assert cell.shade == shade


def test_pairs_without_duels_and_undecided_pairs() -> None:
    rows = Watched().fold(counted("ltr", "bm25", 1, 1)).matrix.rows
    cells = {
        (row.arm, other.arm): cell
        for row in rows
        for other, cell in zip(rows, row.cells, strict=True)
    }
    assert cells["dense", "ltr"].words == "dense against ltr: no duel yet."
    assert cells["dense", "ltr"].text == "·"
    assert cells["ltr", "bm25"].words.endswith("It is undecided which is better.")
    assert not cells["ltr", "bm25"].decided
    assert cells["ltr", "ltr"].shade == "same"


def test_of_little_evidence_the_confidence_is_told() -> None:
    rows = Watched().fold(counted("ltr", "bm25", 58, 42)).matrix.rows
    better, worse = rows[0].cells[2], rows[2].cells[0]
    assert plain(better.words).endswith("Confidence that it is better: 58.0 %.")
    assert plain(worse.words).endswith("Confidence that it is worse: 58.0 %.")
    assert not better.decided


@pytest.mark.parametrize("lost", range(380, 470, 5))
def test_a_champion_is_sure_exactly_when_its_row_is_bold(lost: int) -> None:
    watched = Watched()
    page = watched.fold(
        counted("ltr", "bm25", 1000 - lost, lost), counted("ltr", "dense", 700, 300)
    )
    row = page.matrix.rows[0]
    assert row.arm == "ltr"
    assert all(cell.decided for cell in row.cells[1:]) == page.sure


def test_half_wins_are_shown() -> None:
    rows = Watched().fold(counted("ltr", "bm25", 3, 1, ties=1)).matrix.rows
    assert "won 3.5 of 5 duels" in rows[0].cells[2].words


def test_of_many_arms_the_best_are_shown_with_intervals_valid_for_all() -> None:
    arms = tuple(f"arm{number:03d}" for number in range(300))
    watched = Watched(arms)
    page = watched.fold(counted("arm250", "arm007", 900, 100), counted("arm123", "arm008", 90, 10))
    assert len(page.matrix.arms) == len(page.arms) == MAX_SHOWN_ARMS
    assert page.matrix.left_out == 300 - MAX_SHOWN_ARMS
    assert {"arm250", "arm123"} <= set(page.matrix.arms)
    shown = ranking(watched.view)[:MAX_SHOWN_ARMS]
    part = watched.view.verdict.bounds(shown)
    whole = [each[np.ix_(shown, shown)] for each in intervals(watched.view.wins, DELTA)]
    np.testing.assert_allclose(part, whole)


def test_the_champion_leads_the_ranking() -> None:
    watched = Watched()
    watched.fold(*duels("search", 0, "ltr", "dense", "aaaa"), control("pause"))
    assert ranking(watched.view)[0] == watched.view.champion


def test_of_many_arms_those_served_now_are_shown() -> None:
    arms = tuple(f"arm{number:03d}" for number in range(60))
    watched = Watched(arms)
    page = watched.fold(
        *(counted(best, arm, 9, 1) for best, arm in zip(arms, arms[30:], strict=False))
    )
    assert watched.view.assignment is not None
    served = {arm for pair in watched.view.assignment.pairs for arm in (pair.a, pair.b)}
    best = {arms[arm] for arm in ranking(watched.view)[:MAX_SHOWN_ARMS]}
    assert not served <= best
    assert served <= {arm.name for arm in page.arms}
    assert len(page.arms) == len(page.matrix.arms) == MAX_SHOWN_ARMS
