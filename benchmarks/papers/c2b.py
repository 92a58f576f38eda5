"""C2B paper, Figures 1 and 2: few batches against policies that adapt after every duel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import (
    INFORMATIONAL,
    NAVIGATIONAL,
    WITH_WINNER,
    condorcet_subsets,
    of_arms,
    six_rankers,
)
from benchmarks.papers.regret import average, finals
from benchmarks.papers.verdict import Check, Measured, below, mean_ratio, within
from streamduel.preference.arrays import Floats
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings

RIVALS: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("rucb", "RUCB", {}),
    ("rmed1", "RMED1", {}),
    ("beat_the_mean", "Beat the Mean", {"gamma": 1.3, "tight": True}),
)
"""Name, label and parameters."""
VARIANTS = {"kl": "C2B, ln T", "kl_anytime": "C2B, ln t"}
"""The thresholds of evidence that eliminate an arm."""
COMPARABLE = 1.25
"""The largest ratio of regrets that counts as comparable."""
SEED = 2

Finals = Mapping[str, Sequence[Measured]]
"""The regret at the end by policy, one number for each problem of a task."""


class Task(NamedTuple):
    """One panel: a kind of problem.

    Attributes:
        name: in file names.
        title: on the page.
        problems: preference matrices, with equal weight.
        horizon: T.
        runs: of each problem.
    """

    name: str
    title: str
    problems: Sequence[Floats]
    horizon: int
    runs: int


def tasks(laboratory: Laboratory) -> list[Task]:
    """Those of the paper's six whose data are public, and one more."""
    short, long = laboratory.either(100_000, 5_000), laboratory.either(1_000_000, 5_000)
    runs = laboratory.either(1_000, 2)  # many, because few runs lose the winner
    found = [Task("six", "six rankers of arXiv", [six_rankers()], short, runs)]
    if laboratory.matrices is not None:
        five = of_arms(laboratory.matrix(INFORMATIONAL), WITH_WINNER)
        found.append(Task("mslr5", "five MSLR rankers", [five], short, runs))
        number = laboratory.either(10, 2)
        subsets = condorcet_subsets(laboratory.matrix(NAVIGATIONAL), 30, number, SEED)
        found.append(
            Task("mslr30", f"{number} × 30 MSLR rankers", subsets, long, laboratory.either(10, 1))
        )
    return found


def run(laboratory: Laboratory, *, number: int, more_rounds: int) -> Outcome:
    """One of the two figures; both share the runs of the other policies."""
    all_tasks = tasks(laboratory)
    parts = {
        f"c2b-{task.name}-{place}": _settings(task, problem, more_rounds)
        for task in all_tasks
        for place, problem in enumerate(task.problems)
    }
    results = laboratory.simulate(parts)
    by_task = {
        task.title: [results[f"c2b-{task.name}-{place}"] for place in range(len(task.problems))]
        for task in all_tasks
    }
    file = f"c2b_figure_{number}.png"
    _draw(laboratory, by_task, file)
    found = {title: _finals(each) for title, each in by_task.items()}
    short = {title: each[0] for title, each in by_task.items() if len(each) == 1}
    return _outcome(all_tasks, found, file, number, more_rounds, heavy_tail(short))


def heavy_tail(short: Mapping[str, Results]) -> str:
    """The note on runs that end with a wrong champion.

    Args:
        short: the results of the tasks with many runs, by title.
    """
    tasks_in_words = []
    for title, results in short.items():
        counts = [
            f"{round(result.runs * (1 - result.champion_accuracy[-1])):,} ({label})"
            for result, label in zip(results.policies(), VARIANTS.values(), strict=False)
        ]
        tasks_in_words.append(f"{title} {' and '.join(counts)} of {results.settings.runs:,}")
    return (
        "The regret of C2B with ln t has a heavy tail: a run that eliminates the winner pays for it"
        " to the end, and its mean, with the standard error, rests on how many such runs there"
        " happen to be. Therefore the short tasks have 1,000 runs. With"
        f" a wrong champion ended: {'; '.join(tasks_in_words)} runs."
    )


def _settings(task: Task, problem: Floats, more_rounds: int) -> Settings:
    """One problem's simulation."""
    rounds = math.floor(math.log(task.horizon)) + more_rounds
    ours = [("c2b", {"rounds": rounds, "elimination": variant}) for variant in VARIANTS]
    rivals = [(name, parameters) for name, _, parameters in RIVALS]
    return Settings(problem, [*ours, *rivals], horizon=task.horizon, runs=task.runs, seed=SEED)


def _finals(results: Sequence[Results]) -> dict[str, Sequence[Measured]]:
    """The regret, by the name of a policy."""
    names = [*VARIANTS, *(name for name, _, _ in RIVALS)]
    return {name: finals(results, place) for place, name in enumerate(names)}


def _outcome(
    all_tasks: Sequence[Task],
    found: Mapping[str, Finals],
    file: str,
    number: int,
    more_rounds: int,
    tail: str,
) -> Outcome:
    """The page's section."""
    judge = judge_figure_1 if number == 1 else judge_figure_2
    checks = judge(found)
    settings = "; ".join(
        f"{task.title}: T = {task.horizon:,}, {task.runs:,} runs"
        f"{' of each subset' if len(task.problems) > 1 else ''}"
        for task in all_tasks
    )
    return Outcome(
        method=f"{settings}. B = ⌊ln T⌋{f' + {more_rounds}' if more_rounds else ''}; regret"
        " (Δ_wi + Δ_wj) / 2; α = 0.51, f(K) = 0.3 K^1.01, γ = 1.3 with the tighter of Beat the"
        " Mean's two published radii. The text eliminates an arm when its evidence exceeds ln T +"
        " f(K); the variant with ln t, t the duels so far, is measured too. The rankers with 30"
        " arms are random subsets of the navigational matrix with a Condorcet winner; there the"
        " standard errors are over the subsets.",
        measured=_measured(found, ("rucb",) if number == 1 else ("rucb", "rmed1")),
        checks=checks,
        tables=[_table(found)],
        pictures=[
            Picture(file, "Regret over time of C2B with both eliminations, RUCB, RMED1 and Beat the"
                    f" Mean, one panel for each of {len(all_tasks)} tasks.")
        ],
        notes=[
            tail,
            "Not computed: Sushi, the Irish elections and Yahoo (their matrices are not available)"
            " and SCOMP2. The five MSLR rankers are not among the paper's sets.",
        ],
    )  # fmt: skip


def _measured(found: Mapping[str, Finals], rivals: Sequence[str]) -> str:
    """The ratios, task by task."""
    labels = {name: label for name, label, _ in RIVALS}
    parts = []
    for rival in rivals:
        for variant, label in VARIANTS.items():
            ratios = [mean_ratio(each[variant], each[rival]) for each in found.values()]
            listed = ", ".join(f"{each.value:.2f}" for each in ratios)
            parts.append(f"{label} ÷ {labels[rival]} {listed}")
    return "; ".join(parts)


def judge_figure_1(found: Mapping[str, Finals]) -> list[Check]:
    """Always better than Beat the Mean, comparable to RUCB."""
    checks = []
    for title, finals_of in found.items():
        for variant, label in VARIANTS.items():
            own = finals_of[variant]
            against_btm = mean_ratio(own, finals_of["beat_the_mean"])
            against_rucb = mean_ratio(own, finals_of["rucb"])
            checks += [
                below(f"{label} ÷ Beat the Mean, {title}: below 1", against_btm, 1),
                _comparable(f"{label} ÷ RUCB, {title}", against_rucb),
            ]
    return checks


def judge_figure_2(found: Mapping[str, Finals]) -> list[Check]:
    """Always better than RUCB, comparable to RMED."""
    checks = []
    for title, finals_of in found.items():
        for variant, label in VARIANTS.items():
            own = finals_of[variant]
            against_rucb = mean_ratio(own, finals_of["rucb"])
            against_rmed = mean_ratio(own, finals_of["rmed1"])
            checks += [
                below(f"{label} ÷ RUCB, {title}: below 1", against_rucb, 1),
                _comparable(f"{label} ÷ RMED1, {title}", against_rmed),
            ]
    return checks


def _comparable(claim: str, found: Measured) -> Check:
    return within(f"{claim}: at most {COMPARABLE} (comparable)", found, 0, COMPARABLE)


def _table(found: Mapping[str, Finals]) -> Table:
    labels = {**VARIANTS, **{name: label for name, label, _ in RIVALS}}
    rows = [
        [label, *(average(finals_of[name]).text() for finals_of in found.values())]
        for name, label in labels.items()
    ]
    return Table(["regret at T", *found], rows)


def _draw(laboratory: Laboratory, by_task: Mapping[str, Sequence[Results]], file: str) -> None:
    figure, axes = picture.panels(1, len(by_task), 3.3 * len(by_task), 3.4)
    labels = [*VARIANTS.values(), *(label for _, label, _ in RIVALS)]
    for panel, (title, results) in zip(axes[0], by_task.items(), strict=True):
        picture.add(
            panel,
            [picture.over_time(results, place, label, place) for place, label in enumerate(labels)],
        )
        picture.finish(panel, title, "duels", "cumulative regret")
        panel.set_xlim(left=100)
        panel.set_yscale("log")
        panel.set_ylim(bottom=1)
    axes[0][0].legend(frameon=False, fontsize=8)
    picture.save(figure, laboratory.images / file)


SOURCE = (
    "Agarwal, Ghuge and Nagarajan, An Asymptotically Optimal Batched Algorithm for the Dueling"
    " Bandit Problem, NeurIPS 2022, section 4"
)
FIGURE_1 = Experiment(
    name="c2b_figure_1",
    title="C2B, Figure 1",
    source=SOURCE,
    claim="With B = ⌊ln T⌋ batches C2B always has less regret than Beat the Mean, and comparable"
    " regret to RUCB on all sets but one.",
    matrices=(),
    run=partial(run, number=1, more_rounds=0),
)
FIGURE_2 = Experiment(
    name="c2b_figure_2",
    title="C2B, Figure 2",
    source=SOURCE,
    claim="With B = ⌊ln T⌋ + 6 batches C2B always has less regret than RUCB, and comparable regret"
    " to RMED on all sets but one.",
    matrices=(),
    run=partial(run, number=2, more_rounds=6),
)
