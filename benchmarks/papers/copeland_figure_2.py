"""Copeland paper, Figure 2: five hundred arms, three winners in a cycle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import three_in_a_cycle
from benchmarks.papers.regret import finals
from benchmarks.papers.verdict import Check, Measured, below, ratio
from streamduel.preference.arrays import Floats
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings

NAMES = {"scb": "SCB", "ccb": "CCB"}
CONSTANT = 0.45
UNIFORM = (0.35, 0.5)
"""The gaps are not published. Smaller ones would need far longer runs."""
SEED = 6
FILE = "copeland_figure_2.png"


def worlds(n_arms: int) -> dict[str, Floats]:
    """Two assumptions about the gaps, by title."""
    random = np.random.default_rng(SEED)
    low, high = UNIFORM
    spread = low + (high - low) * random.random((n_arms, n_arms))
    return {
        f"all gaps {CONSTANT}": three_in_a_cycle(np.full((n_arms, n_arms), CONSTANT)),
        f"gaps uniform from {low} to {high}": three_in_a_cycle(spread),
    }


def run(laboratory: Laboratory) -> Outcome:
    """SCB and CCB with both kinds of gaps."""
    n_arms, horizon = laboratory.either(500, 20), laboratory.either(10_000_000, 10_000)
    runs = laboratory.either(5, 2)
    entries: list[tuple[str, dict[str, object]]] = [(name, {}) for name in NAMES]
    found_worlds = worlds(n_arms)
    parts = {
        f"copeland_figure_2-{place}": Settings(
            p, entries, horizon=horizon, runs=runs, seed=SEED, regret="copeland"
        )
        for place, p in enumerate(found_worlds.values())
    }
    results = dict(zip(found_worlds, laboratory.simulate(parts).values(), strict=True))
    found = {
        title: {name: finals([each], place)[0] for place, name in enumerate(NAMES)}
        for title, each in results.items()
    }
    _draw(laboratory, results)
    return Outcome(
        method=f"{n_arms} arms: three Copeland winners in a cycle, with {n_arms - 2} wins each; the"
        f" others in a row, with 0 to {n_arms - 4} wins. The paper does not give the gaps"
        f" |p_ij - 1/2|, nor the number of runs; {runs} runs of {horizon:,} duels, Copeland regret,"
        " α = 0.51.",
        measured="; ".join(
            f"{title}: SCB {each['scb'].text()}, CCB {each['ccb'].text()}"
            for title, each in found.items()
        ),
        checks=judge(found),
        tables=[_table(found)],
        pictures=[Picture(FILE, "Copeland regret over time of SCB and CCB with many arms, for two"
                          " kinds of gaps.")],
        notes=["The verdict is on these gaps alone: with the paper's, which are unknown, it may be"
               " another one. Large gaps are chosen since the time to the transition grows with"
               " the inverse square of the gap."],
    )  # fmt: skip


def judge(found: Mapping[str, Mapping[str, Measured]]) -> list[Check]:
    """SCB substantially outperforms CCB."""
    return [
        below(
            f"SCB ÷ CCB, {title}: below 1/1.5 (substantially)",
            ratio(each["scb"], each["ccb"]),
            1 / 1.5,
        )
        for title, each in found.items()
    ]


def _table(found: Mapping[str, Mapping[str, Measured]]) -> Table:
    rows = [[label, *(each[name].text() for each in found.values())]
            for name, label in NAMES.items()]  # fmt: skip
    return Table(["Copeland regret at the end", *found], rows)


def _draw(laboratory: Laboratory, results: Mapping[str, Results]) -> None:
    figure, axes = picture.panels(1, len(results), 3.6 * len(results), 3.2)
    for panel, (title, each) in zip(axes[0], results.items(), strict=True):
        curves = [
            picture.over_time([each], place, label, place)
            for place, label in enumerate(NAMES.values())
        ]
        picture.add(panel, curves)
        picture.finish(panel, title, "duels", "cumulative Copeland regret")
        panel.set_xlim(left=1000)
        panel.set_ylim(bottom=0)
    axes[0][0].legend(frameon=False)
    picture.save(figure, laboratory.images / FILE)


EXPERIMENT = Experiment(
    name="copeland_figure_2",
    title="Copeland, Figure 2",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, section 6",
    claim="With 500 arms, three of them Copeland winners in a cycle, SCB substantially outperforms"
    " CCB.",
    matrices=(),
    run=run,
)
