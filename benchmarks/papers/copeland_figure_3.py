"""Copeland paper, Figure 3: CCB against RUCB where there is a Condorcet winner."""

from __future__ import annotations

import io

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL, WITH_WINNER, of_arms
from benchmarks.papers.regret import finals
from benchmarks.papers.verdict import Check, Measured, above, below, ratio
from streamduel.simulation.plot import draw
from streamduel.simulation.settings import Settings

NAMES = {"ccb": "CCB", "rucb": "RUCB", "scb": "SCB", "copeland_savage": "Copeland SAVAGE"}
SEED = 3
FILE = "copeland_figure_3.png"


def run(laboratory: Laboratory) -> Outcome:
    """Run CCB, RUCB, and the two policies that the paper left out of its plot."""
    runs, horizon = laboratory.either(500, 2), laboratory.either(1_000_000, 10_000)
    p = of_arms(laboratory.matrix(INFORMATIONAL), WITH_WINNER)
    settings = Settings(p, [(name, {}) for name in NAMES], horizon=horizon, runs=runs, seed=SEED)
    results = laboratory.simulate({"copeland_figure_3": settings})["copeland_figure_3"]
    found = {name: finals([results], place)[0] for place, name in enumerate(NAMES)}
    laboratory.images.mkdir(parents=True, exist_ok=True)
    path = laboratory.images / FILE
    draw(results, path, title="five MSLR rankers, informational clicks", scale="log")
    picture.shrink(io.BytesIO(path.read_bytes()), path)
    return Outcome(
        method=f"Rankers {', '.join(map(str, WITH_WINNER))} of MSLR under informational clicks, of"
        f" which one is a Condorcet winner; the paper does not name its five. {runs} runs of"
        f" {horizon:,} duels, regret (Δ_wi + Δ_wj) / 2; α = 0.51.",
        measured=f"CCB {found['ccb'].text()}, RUCB {found['rucb'].text()}",
        checks=judge(found),
        tables=[
            Table(
                ["policy", f"regret after {horizon:,}"],
                [[label, found[name].text(1)] for name, label in NAMES.items()],
            )
        ],
        pictures=[Picture(FILE, "Regret over time of CCB, RUCB, SCB and Copeland SAVAGE on five"
                          " rankers with a Condorcet winner.")],
    )  # fmt: skip


def judge(found: dict[str, Measured]) -> list[Check]:
    """CCB is better than RUCB, and both are far better than the other two."""
    worse = min(found["ccb"], found["rucb"], key=lambda each: -each.value)
    return [
        below("CCB ÷ RUCB: below 1", ratio(found["ccb"], found["rucb"]), 1, 3),
        *(
            above(
                f"{NAMES[name]} ÷ the worse of both: above 1.5 (substantially worse)",
                ratio(found[name], worse),
                1.5,
            )
            for name in ("scb", "copeland_savage")
        ),
    ]


EXPERIMENT = Experiment(
    name="copeland_figure_3",
    title="Copeland, Figure 3",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, section 6",
    claim="With a Condorcet winner CCB has slightly less regret than RUCB; SCB and SAVAGE have"
    " substantially more than either.",
    matrices=(INFORMATIONAL,),
    run=run,
)
