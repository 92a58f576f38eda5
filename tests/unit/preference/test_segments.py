"""What segments say: right, corrected for their number, and honest about chance."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.preference.arrays import Integers
from streamduel.preference.segments import (
    SegmentReport,
    disagreement,
    judge_segments,
    leader_of,
)
from streamduel.preference.verdict import LEVEL, Verdict
from tests.unit.preference.calls import calls

ARMS = ["bm25", "ltr", "dense"]


def counts(rng: np.random.Generator, p: list[list[float]], n: int) -> Integers:
    """(K, K) wins of n duels of each pair."""
    upper = np.triu(rng.binomial(n, p), 1)
    return np.asarray(upper + np.tril(n - upper.T, -1), dtype=np.int64)


def judged(wins: list[Integers], ties: list[Integers] | None = None) -> SegmentReport:
    names = [("class", f"s-{number}") for number in range(len(wins))]
    stacked = np.array(wins)
    return judge_segments(names, stacked, np.array(ties or 0 * stacked), ARMS)


def test_confidence_is_that_of_one_experiment_corrected_for_the_number_of_segments() -> None:
    wins = counts(np.random.default_rng(7), [[0.5, 0.42, 0.45]] * 3, 400)
    alone, of_four = judged([wins]), judged([wins] * 4)
    verdict = Verdict.of(wins.astype(float), np.zeros((3, 3)), champion=0, seeks="copeland")
    assert alone.disagreements == {}
    for report, looks in ((alone, 1), (of_four, 4)):
        found = report.segments["class"]["s-0"]
        of_one = Verdict.of(
            wins.astype(float), np.zeros((3, 3)), ARMS.index(str(found.leader)), "condorcet"
        )
        assert found.confidence == max(0.0, 1 - looks * (1 - of_one.confidence))
        assert found.duels == 1200 == verdict.wins.sum()


def test_a_segment_without_duels_is_undecided() -> None:
    report = judged([np.zeros((3, 3), dtype=np.int64)] * 2)
    found = report.segments["class"]["s-0"]
    assert (found.champion, found.leader, found.confidence, found.duels) == (None, None, 0.0, 0)
    assert report.disagreements["class"].verdict == "none"


@pytest.mark.parametrize(("wins", "ties", "duels"), [(0, 30, 30), (20, 0, 40), (20, 30, 70)])
def test_where_no_arm_beats_another_none_is_ahead(wins: int, ties: int, duels: int) -> None:
    even = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]])
    found = judged([wins * even], [ties * even]).segments["class"]["s-0"]
    assert (found.champion, found.leader, found.duels) == (None, None, duels)


def test_champions_that_differ_are_found() -> None:
    rng = np.random.default_rng(7)
    first = counts(rng, [[0.5, 0.6, 0.6], [0, 0.5, 0.5], [0, 0, 0.5]], 1500)
    second = counts(rng, [[0.5, 0.4, 0.6], [0, 0.5, 0.6], [0, 0, 0.5]], 1500)
    report = judged([first, second])
    found = report.segments["class"]
    assert (found["s-0"].champion, found["s-1"].champion) == ("bm25", "ltr")
    assert report.disagreements["class"].verdict == "opposite"
    assert "bm25 over ltr has 0.6" in report.disagreements["class"].sentence


def test_a_difference_of_size_is_no_opposition() -> None:
    rng = np.random.default_rng(7)
    first = counts(rng, [[0.5, 0.8, 0.5], [0, 0.5, 0.5], [0, 0, 0.5]], 1500)
    second = counts(rng, [[0.5, 0.6, 0.5], [0, 0.5, 0.5], [0, 0, 0.5]], 1500)
    assert judged([first, second]).disagreements["class"].verdict == "different"


@pytest.mark.parametrize(
    ("first", "second", "verdict", "rival"),
    [((950, 600), (600, 400), "opposite", "dense"), ((950, 800), (600, 600), "different", "ltr")],
)
def test_an_opposition_is_told_first_and_then_the_largest_difference(
    first: tuple[int, int], second: tuple[int, int], verdict: str, rival: str
) -> None:
    def wins(ltr: int, dense: int) -> Integers:
        return np.array([[0, ltr, dense], [1000 - ltr, 0, 500], [1000 - dense, 500, 0]])

    found = judged([wins(*first), wins(*second)]).disagreements["class"]
    assert (found.verdict, f"bm25 over {rival}" in found.sentence) == (verdict, True)


@pytest.mark.parametrize("seed", range(10))
def test_the_pair_that_differs_most_is_that_of_the_results_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wins = rng.binomial(800, rng.uniform(0.3, 0.7, (4, 6, 6))) * (1 - np.eye(6, dtype=np.int64))
    met = np.triu(rng.random((4, 6, 6)) < 0.8, 1)
    wins *= met | met.transpose(0, 2, 1)
    names, arms = [("class", f"s-{number}") for number in range(4)], list("uvwxyz")
    level = 1 - (1 - LEVEL) / 4
    pairs = {
        name: [*Verdict.of(each.astype(float), 0.0 * each, 0, "copeland", level).pairs(arms)]
        for (_, name), each in zip(names, wins, strict=True)
    }
    told = judge_segments(names, wins, 0 * wins, arms).disagreements["class"]
    assert told == disagreement("class", pairs)
    assert told.verdict != "none"


def test_nothing_is_done_for_each_pair() -> None:
    def work(n_arms: int) -> int:
        wins = counts(np.random.default_rng(7), [[0.6] * n_arms] * n_arms, 400)
        names, arms = [("class", "s-0"), ("class", "s-1")], [f"arm{i}" for i in range(n_arms)]
        both = np.array([wins, wins.T])
        return calls(lambda: judge_segments(names, both, 0 * both, arms)).total()

    for n_arms in (4, 40):
        work(n_arms)  # fills caches of logarithms
    assert work(40) < 2 * work(4), "with 780 pairs instead of 6"


def test_ties_are_half_a_win_each_way() -> None:
    wins = counts(np.random.default_rng(7), [[0.5, 0.7, 0.7]] * 3, 300)
    ties = 100 * (1 - np.eye(3, dtype=np.int64))
    report = judged([wins], [ties])
    assert report.segments["class"]["s-0"].duels == 1200


def test_equal_segments_disagree_by_chance_in_at_most_five_per_cent() -> None:
    """400 experiments of four equal segments, looked at ten times each."""
    rng = np.random.default_rng(7)
    wrong = false_champions = 0
    for _ in range(400):
        wins = [np.zeros((3, 3), dtype=np.int64) for _ in range(4)]
        disagreed = champion = False
        for _ in range(10):
            wins = [each + counts(rng, [[0.5] * 3] * 3, 40) for each in wins]
            report = judged(wins)
            disagreed |= report.disagreements["class"].verdict != "none"
            champion |= any(each.champion for each in report.segments["class"].values())
        wrong += disagreed
        false_champions += champion
    assert wrong <= 0.05 * 400
    assert false_champions <= 0.05 * 400
    assert LEVEL == 0.95


@pytest.mark.parametrize(
    ("wins", "leader"),
    [
        ([[0, 3, 1], [2, 0, 6], [2, 1, 0]], 1),  # each beats one other; it won 8 and lost 4
        ([[0, 2, 1], [1, 0, 2], [2, 1, 0]], 0),  # no difference: the first
    ],
)
def test_of_arms_that_beat_equally_many_the_one_with_more_wins_leads(
    wins: list[list[int]], leader: int
) -> None:
    assert leader_of(np.array(wins, dtype=np.float64)) == (leader, "copeland")
