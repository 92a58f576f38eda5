"""Each figure's rule on numbers that are made up."""

from __future__ import annotations

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
from benchmarks.papers.rucb_figure_4 import Summary
from benchmarks.papers.verdict import Check, Measured, verdict


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
