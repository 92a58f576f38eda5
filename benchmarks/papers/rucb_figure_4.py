"""RUCB paper, Figure 4: regret and accuracy of RUCB, Condorcet SAVAGE and Beat the Mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import NAVIGATIONAL, condorcet_subsets
from benchmarks.papers.picture import Curve, Numbers
from benchmarks.papers.regret import average, finals
from benchmarks.papers.verdict import (
    Check,
    Measured,
    above,
    is_true,
    mean,
    mean_ratio,
    within,
)
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings

SIZES = (16, 32, 64)
HORIZONS = (1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000, 4_500_000)
BOUND: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("condorcet_savage", "Condorcet SAVAGE", {}),
    ("beat_the_mean", "Beat the Mean", {"gamma": 1.3, "tight": True}),
)
"""Policies with a horizon: each horizon has its own runs. Name, label and parameters."""
SEED = 4
FILE = "rucb_figure_4.png"
EARLY = 0.2
"""RUCB is as accurate after this share of SAVAGE's time."""


class Size(NamedTuple):
    """The results for one K.

    Attributes:
        rucb: for each subset.
        bound: by horizon, for each subset.
    """

    rucb: Sequence[Results]
    bound: Mapping[int, Sequence[Results]]


class Summary(NamedTuple):
    """The numbers of the verdict for one K, at the last horizon.

    Attributes:
        savage: SAVAGE's regret ÷ RUCB's.
        beat_the_mean: Beat the Mean's regret ÷ RUCB's.
        early: RUCB's accuracy after a fifth of the horizon less SAVAGE's at the horizon.
    """

    savage: Measured
    beat_the_mean: Measured
    early: Measured


def run(laboratory: Laboratory) -> Outcome:
    """Run all sizes and horizons."""
    horizons = HORIZONS[:3] if laboratory.quick else HORIZONS
    sizes = SIZES[:1] if laboratory.quick else SIZES
    subsets, runs = laboratory.either(10, 2), laboratory.either(10, 2)
    found = _simulate(laboratory, sizes, horizons, subsets, runs)
    summaries = {size: _summary(each) for size, each in found.items()}
    _draw(laboratory, found)
    span = f"K = {', '.join(map(str, sizes))}"
    return Outcome(
        method=f"The paper's 64 rankers of LETOR NP2004 are not public; here are {subsets} random"
        f" subsets of the 136 MSLR rankers under navigational clicks for {span} each, all with"
        f" a Condorcet winner, {runs} runs of each ({subsets * runs} runs for each K, as many as in"
        f" the paper), up to {horizons[-1]:,} duels. Regret is (Δ_wi + Δ_wj) / 2, α = 0.51; SAVAGE"
        " and Beat the Mean (γ = 1.3, the tighter of its two published radii, which loses less)"
        " are told the horizon: each of their points has its own runs. Standard"
        " errors are over the subsets.",
        measured="SAVAGE ÷ RUCB "
        + ", ".join(each.savage.text(1) for each in summaries.values())
        + f" ({span})",
        checks=judge(summaries, horizons[-1]),
        tables=[_table(found, horizons[-1])],
        pictures=[Picture(FILE, "Regret and accuracy over time of RUCB, Condorcet SAVAGE and Beat"
                          " the Mean, for three numbers of arms; dotted: the least and the largest"
                          " regret of a run.")],
        notes=[_note(found)],
    )  # fmt: skip


def _simulate(
    laboratory: Laboratory,
    sizes: Sequence[int],
    horizons: Sequence[int],
    subsets: int,
    runs: int,
) -> dict[int, Size]:
    """Run everything at once, so that no process is idle."""
    p = laboratory.matrix(NAVIGATIONAL)
    bound = [(name, parameters) for name, _, parameters in BOUND]
    parts = {}
    for size in sizes:
        for place, subset in enumerate(condorcet_subsets(p, size, subsets, SEED)):
            name = f"rucb_figure_4-{size}-{place}"
            parts[name] = Settings(
                subset, [("rucb", {})], horizon=horizons[-1], runs=runs, seed=SEED
            )
            for horizon in horizons:
                parts[f"{name}-{horizon}"] = Settings(
                    subset, bound, horizon=horizon, runs=runs, seed=SEED
                )
    results = laboratory.simulate(parts)
    names = {size: [f"rucb_figure_4-{size}-{place}" for place in range(subsets)] for size in sizes}
    return {
        size: Size(
            [results[name] for name in names[size]],
            {t: [results[f"{name}-{t}"] for name in names[size]] for t in horizons},
        )
        for size in sizes
    }


def _summary(found: Size) -> Summary:
    """The numbers of the verdict."""
    last = max(found.bound)
    rucb = finals(found.rucb, 0)
    times = found.rucb[0].settings.checkpoints
    early = max(place for place, t in enumerate(times) if t <= EARLY * last)
    pairs = zip(found.rucb, found.bound[last], strict=True)
    differences = [
        one.policies()[0].champion_accuracy[early] - other.policies()[0].champion_accuracy[-1]
        for one, other in pairs
    ]
    return Summary(
        mean_ratio(finals(found.bound[last], 0), rucb),
        mean_ratio(finals(found.bound[last], 1), rucb),
        mean(differences),
    )


def judge(summaries: Mapping[int, Summary], last: int) -> list[Check]:
    """The paper's statements on Figure 4, for each K."""
    checks = []
    for size, found in summaries.items():
        checks += [
            above(f"K = {size}: SAVAGE ÷ RUCB at {last:,}: above 1", found.savage, 1, 1),
            within(f"K = {size}: SAVAGE ÷ RUCB: 5 to 10", found.savage, 5, 10, 1),
            is_true(
                f"K = {size}: Beat the Mean has more regret still than SAVAGE",
                f"Beat the Mean ÷ RUCB {found.beat_the_mean.text(1)}",
                found.beat_the_mean.value > found.savage.value,
            ),
            within(
                f"K = {size}: RUCB's accuracy after a fifth of the time, less SAVAGE's: not below"
                " 0",
                found.early,
                0,
                1,
            ),
        ]
    return checks


def _table(found: Mapping[int, Size], last: int) -> Table:
    rows = []
    for size, each in found.items():
        kinds = [("RUCB", each.rucb, 0)]
        kinds += [(label, each.bound[last], place) for place, (_, label, _) in enumerate(BOUND)]
        for label, results, place in kinds:
            accuracy = [one.policies()[place].champion_accuracy[-1] for one in results]
            regret = average(finals(results, place))
            rows.append([f"{label}, K = {size}", regret.text(), f"{np.mean(accuracy):.2f}"])
    return Table(["policy", f"regret after {last:,}", "accuracy"], rows)


def _note(found: Mapping[int, Size]) -> str:
    """A note on the difficulty of the subsets."""
    least = {size: [_least_gap(each) for each in one.rucb] for size, one in found.items()}
    ranges = "; ".join(
        f"K = {size}: {min(gaps):.4f} to {max(gaps):.4f}" for size, gaps in least.items()
    )
    return (
        f"The winner's smallest lead over another ranker in the subsets, from the hardest to the"
        f" easiest: {ranges}. Where it is small, the policies are still exploring at the horizon,"
        " and the ratio is nearer to 1."
    )


def _least_gap(results: Results) -> float:
    """The winner's smallest lead."""
    p = results.settings.truths[0].preferences
    (winner,) = results.settings.truths[0].winners
    return float(np.delete(p[winner], winner).min() - 0.5)


def _draw(laboratory: Laboratory, found: Mapping[int, Size]) -> None:
    figure, axes = picture.panels(2, len(found), 3.2 * len(found), 5)
    for column, (size, each) in enumerate(found.items()):
        above_panel, below_panel = axes[0][column], axes[1][column]
        picture.add(above_panel, _curves(each, regret=True))
        picture.finish(above_panel, f"K = {size}", "", "" if column else "cumulative regret")
        above_panel.set_yscale("log")
        above_panel.set_xlim(left=1000)
        above_panel.set_ylim(bottom=10)
        picture.add(below_panel, _curves(each, regret=False))
        picture.finish(below_panel, "", "duels", "" if column else "accuracy")
        below_panel.set_xlim(left=1000)
        below_panel.set_ylim(-0.02, 1.02)
    axes[0][0].legend(frameon=False, fontsize=8)
    picture.save(figure, laboratory.images / FILE)


def _curves(found: Size, *, regret: bool) -> list[Curve]:
    """RUCB over time, the others by horizon."""
    times = found.rucb[0].settings.checkpoints
    columns = [_column(found.rucb, 0, place, regret) for place in range(len(times))]
    curves = [_curve("RUCB", 0, times, columns, apart=False, outlined=regret)]
    for place, (_, label, _) in enumerate(BOUND):
        columns = [_column(each, place, -1, regret) for each in found.bound.values()]
        horizons = list(found.bound)
        curves.append(_curve(label, place + 1, horizons, columns, apart=True, outlined=regret))
    return curves


def _column(results: Sequence[Results], policy: int, time: int, regret: bool) -> Numbers:
    """The regret of all runs at one time; or the accuracy, subset by subset."""
    if regret:
        return [run[time] for each in results for run in each.regrets(policy)]
    return [each.policies()[policy].champion_accuracy[time] for each in results]


def _curve(
    label: str,
    place: int,
    times: Numbers,
    columns: Sequence[Numbers],
    *,
    apart: bool,
    outlined: bool,
) -> Curve:
    """The mean, between the least and the largest."""
    low = [min(column) for column in columns] if outlined else []
    high = [max(column) for column in columns] if outlined else []
    line = [float(np.mean(column)) for column in columns]
    return Curve(label, place, times, line, low, high, apart, outlined)


EXPERIMENT = Experiment(
    name="rucb_figure_4",
    title="RUCB, Figure 4",
    source="Zoghi, Whiteson, Munos and de Rijke, Relative Upper Confidence Bound for the K-Armed"
    " Dueling Bandit Problem, ICML 2014, section 6",
    claim="In the long run RUCB gathers 5 to 10 times less regret than Condorcet SAVAGE, is as"
    " accurate in a fifth of the time, and need not know the horizon; Beat the Mean is far worse.",
    matrices=(NAVIGATIONAL,),
    run=run,
)
