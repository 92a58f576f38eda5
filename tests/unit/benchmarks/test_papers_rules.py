"""The verdict rule of each figure on invented numbers."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers import (
    c2b,
    condorcet_assumption,
    copeland_figure_1,
    copeland_figure_2,
    copeland_figure_3,
    copeland_gap,
    copeland_table_1,
    rucb_figure_4,
)
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import six_rankers
from benchmarks.papers.page import HEAD
from benchmarks.papers.rucb_figure_4 import Summary
from benchmarks.papers.verdict import Check, Measured, verdict
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings


def standings(checks: list[Check]) -> list[str]:
    return [check.standing for check in checks]


def test_rucb_figure_4() -> None:
    good = Summary(Measured(7, 0.5), Measured(30, 1), Measured(0.1, 0.02))
    assert verdict(rucb_figure_4.judge({16: good, 64: good}, 4_500_000)) == "reproduced"
    weak = Summary(Measured(3, 0.2), Measured(2, 0.1), Measured(0.0, 0.02))
    assert standings(rucb_figure_4.judge({16: weak}, 1000)) == ["holds", "fails", "fails", "holds"]
    bad = Summary(Measured(0.8, 0.05), Measured(0.7), Measured(-0.2, 0.02))
    assert verdict(rucb_figure_4.judge({16: bad}, 1000)) == "not reproduced"


def test_rucb_figure_5() -> None:
    winner = {1: Measured(1), 2: Measured(1), 3: Measured(0.98), 4: Measured(0.99)}
    order = {16: Measured(0.1, 0.01)}
    judge = condorcet_assumption.judge_navigational
    assert verdict(judge(winner, order)) == "reproduced"
    low = {**winner, 3: Measured(0.9)}
    assert standings(judge(low, order)) == ["fails", "holds", "holds"]
    falling = {1: Measured(1), 2: Measured(0.9), 3: Measured(0.8)}
    assert verdict(judge(falling, {16: Measured(0.9, 0.01)})) == "not reproduced"


def test_copeland_figure_4() -> None:
    falling = {size: Measured(1 / size) for size in range(1, 137)}
    flat = {size: Measured(1) for size in range(1, 137)}
    judge = condorcet_assumption.judge_informational
    assert verdict(judge(falling, flat)) == "reproduced"
    assert standings(judge(flat, flat)) == ["holds", "fails", "fails"]
    rising = {size: Measured(0.5 + size / 1000) for size in range(1, 137)}
    assert verdict(judge(rising, falling)) == "not reproduced"


def test_copeland_figure_1() -> None:
    def regrets(ccb: float, rucb_before: float) -> dict[str, dict[int, Measured]]:
        return {
            "ccb": {100: Measured(ccb, 1)},
            "scb": {100: Measured(300, 1)},
            "rucb": {10: Measured(rucb_before), 100: Measured(200, 1)},
        }

    judge = copeland_figure_1.judge
    assert verdict(judge(regrets(100, 20), 100)) == "reproduced"
    assert standings(judge(regrets(199, 20), 100)) == ["holds", "undecided", "holds"]
    assert verdict(judge(regrets(400, 100), 100)) == "not reproduced"


def test_copeland_figure_2() -> None:
    def judged(scb: float) -> str:
        return verdict(
            copeland_figure_2.judge({"gaps": {"scb": Measured(scb, 1), "ccb": Measured(100, 1)}})
        )

    assert judged(50) == "reproduced"
    assert judged(90) == "not reproduced"


def test_copeland_figure_3() -> None:
    found = {
        "ccb": Measured(219, 4),
        "rucb": Measured(250, 4),
        "scb": Measured(900, 9),
        "copeland_savage": Measured(800, 9),
    }
    assert verdict(copeland_figure_3.judge(found)) == "reproduced"
    found["ccb"] = Measured(249, 4)
    assert standings(copeland_figure_3.judge(found)) == ["undecided", "holds", "holds"]
    found = {**found, "ccb": Measured(900, 4)}
    assert verdict(copeland_figure_3.judge(found)) == "not reproduced"


def test_copeland_table_1() -> None:
    published = dict(copeland_table_1.PUBLISHED)
    assert verdict(copeland_table_1.judge(published, 5000)) == "reproduced"
    off = {**published, "Copeland, Borda": 0.49}
    assert verdict(copeland_table_1.judge(off, 5000)) == "partly"
    assert verdict(copeland_table_1.judge(off, 500)) == "reproduced"
    assert verdict(copeland_table_1.judge(dict.fromkeys(published, 0.3), 5000)) == "not reproduced"


def test_copeland_gap() -> None:
    assert copeland_gap.judge(1418.78)
    assert not copeland_gap.judge(1419.6)


def test_c2b() -> None:
    def found(kl: float, anytime: float) -> dict[str, dict[str, list[Measured]]]:
        rivals = {"rucb": 100, "rmed1": 80, "beat_the_mean": 500}
        numbers = {**rivals, "kl": kl, "kl_anytime": anytime}
        return {"six": {name: [Measured(value, 1)] for name, value in numbers.items()}}

    assert verdict(c2b.judge_figure_1(found(110, 90))) == "reproduced"
    assert standings(c2b.judge_figure_1(found(150, 90))) == ["holds", "fails", "holds", "holds"]
    assert verdict(c2b.judge_figure_1(found(600, 600))) == "not reproduced"
    assert verdict(c2b.judge_figure_2(found(95, 90))) == "reproduced"
    assert standings(c2b.judge_figure_2(found(99, 90)))[0] == "undecided"
    assert verdict(c2b.judge_figure_2(found(120, 110))) == "not reproduced"


def test_c2b_counts_the_runs_that_lose_the_winner(tmp_path: Path) -> None:
    short = c2b.tasks(Laboratory(tmp_path, tmp_path))
    assert [(task.name, task.runs) for task in short] == [("six", 1000)]
    policies = [("c2b", {"elimination": variant}) for variant in c2b.VARIANTS]
    settings = Settings(
        six_rankers(), [*policies, ("rucb", {})], horizon=10, runs=5, seed=1, per_decade=1
    )
    results = Results(settings)
    for place, contestant in enumerate(settings.specs):
        for run in range(5):
            right = [False, place != 1 or run > 1]  # ln t loses the winner in two runs
            results.add(RunResult(*contestant, run, [1.0, 2.0], right, 1.0))
    note = c2b.heavy_tail({"six rankers": results, "five": results})
    assert "six rankers 0 (C2B, ln T) and 2 (C2B, ln t) of 5; five 0 (" in note
    assert "heavy tail" in note


def test_at_most_is_a_range_from_0() -> None:
    def standing(kl: float) -> str:
        numbers = {"rucb": 100, "beat_the_mean": 500, "kl": kl, "kl_anytime": 1}
        found = {"six": {name: [Measured(value, 5)] for name, value in numbers.items()}}
        return standings(c2b.judge_figure_1(found))[1]

    # Twice the standard error of the ratio is 0.16.
    assert [standing(kl) for kl in (1, 124, 126, 150)] == ["holds", "holds", "undecided", "fails"]
    assert '"At most" is the range from 0 to its bound' in HEAD
