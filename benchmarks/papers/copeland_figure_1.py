"""Copeland paper, Figure 1: five arms without a Condorcet winner."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL, WITHOUT_WINNER, of_arms
from benchmarks.papers.picture import Curve
from benchmarks.papers.regret import finals
from benchmarks.papers.verdict import Check, Measured, below, mean, ratio, within
from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings

ANYTIME = {"ccb": "CCB", "scb": "SCB", "rucb": "RUCB"}
"""Policies without a horizon."""
_BASELINES = {
    "copeland_savage": "Copeland SAVAGE",
    "copeland_pbr": "Copeland PBR",
    "copeland_rankel": "Copeland RankEl",
}
HORIZON_BOUND = {n: label for n, label in _BASELINES.items() if n in policies.names()}
"""Policies with a horizon: each horizon has its own runs."""
LABELS = {**ANYTIME, **HORIZON_BOUND}
HORIZONS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
SEED = 1
FILE = "copeland_figure_1.png"

Entries = list[tuple[str, dict[str, object]]]
Regrets = Mapping[str, Mapping[int, Measured]]
"""By policy and number of duels."""


def run(laboratory: Laboratory) -> Outcome:
    """Run all policies on the paper's task."""
    horizons = HORIZONS[:3] if laboratory.quick else HORIZONS
    runs = laboratory.either(100, 2)
    p = of_arms(laboratory.matrix(INFORMATIONAL), WITHOUT_WINNER)
    parts = _parts(p, horizons, runs)
    results = laboratory.simulate(parts)
    curves, regrets = _evaluate(results, horizons)
    _draw(laboratory, curves)
    last, shown = horizons[-1], horizons[::2]
    ccb = regrets["ccb"][last]
    return Outcome(
        method=f"Rankers {', '.join(map(str, WITHOUT_WINNER))} of MSLR under informational clicks,"
        f" three of which are Copeland winners; the paper does not name its five. {runs} runs"
        f" of {last:,} duels, Copeland regret; α = 0.51 for CCB and RUCB."
        f" {', '.join(HORIZON_BOUND.values())}: told a horizon, each point is made of runs of its"
        " own.",
        measured=f"CCB {ccb.text()}; next best {_next_best(regrets, last)}; RUCB"
        f" {regrets['rucb'][last].text()}",
        checks=judge(regrets, last),
        tables=[_table(regrets, shown)],
        pictures=[Picture(FILE, "Copeland regret over time of CCB, SCB, RUCB and policies that"
                          " are told the horizon, on five rankers.")],
        notes=[*_lacking(),
               "SCB starts again after 4, 16, 256, 65,536 and 2³² duels, and explores all arms"
               " until the epoch has found one."],
    )  # fmt: skip


def _parts(p: Floats, horizons: tuple[int, ...], runs: int) -> dict[str, Settings]:
    """One simulation of the policies without a horizon, and one for each horizon."""
    bound: Entries = [(name, {}) for name in HORIZON_BOUND]
    parts = {
        f"copeland_figure_1-{horizon}": Settings(
            p, bound, horizon=horizon, runs=runs, seed=SEED, regret="copeland"
        )
        for horizon in horizons
    }
    parts["copeland_figure_1"] = Settings(
        p,
        [(name, {}) for name in ANYTIME],
        horizon=horizons[-1],
        runs=runs,
        seed=SEED,
        regret="copeland",
    )
    return parts


def _evaluate(
    results: Mapping[str, Results], horizons: tuple[int, ...]
) -> tuple[list[Curve], dict[str, dict[int, Measured]]]:
    """The lines of the plot, and the regret at each horizon."""
    anytime = results["copeland_figure_1"]
    times = anytime.settings.checkpoints
    curves, regrets = [], {}
    for place, (name, label) in enumerate(ANYTIME.items()):
        curves.append(picture.over_time([anytime], place, label, place))
        rows = anytime.regrets(place)
        regrets[name] = {t: mean([row[times.index(t)] for row in rows]) for t in horizons}
    for place, (name, label) in enumerate(HORIZON_BOUND.items()):
        found = {t: finals([results[f"copeland_figure_1-{t}"]], place)[0] for t in horizons}
        regrets[name] = found
        line = [each.value for each in found.values()]
        curves.append(Curve(label, len(ANYTIME) + place, horizons, line, apart=True))
    return curves, regrets


def judge(regrets: Regrets, last: int) -> list[Check]:
    """CCB is best, and RUCB's regret grows in proportion to time.

    Args:
        regrets: of all policies.
        last: the horizon.
    """
    checks = [
        below(
            f"CCB ÷ {LABELS[name]} at {last:,}: below 1",
            ratio(regrets["ccb"][last], found[last]),
            1,
        )
        for name, found in regrets.items()
        if name != "ccb"
    ]
    # Without an error: both numbers are of the same runs, so they are not independent.
    growth = Measured(regrets["rucb"][last].value / regrets["rucb"][last // 10].value)
    checks.append(
        within("RUCB is linear: ten times the duels, 9 to 11 times the regret", growth, 9, 11)
    )
    return checks


def _lacking() -> list[str]:
    """A note on the paper's policies that streamduel does not have."""
    lacking = [label for name, label in _BASELINES.items() if name not in HORIZON_BOUND]
    return [f"Not computed: {', '.join(lacking)}, which streamduel does not have."] * bool(lacking)


def _next_best(regrets: Regrets, last: int) -> str:
    rivals = {name: found[last] for name, found in regrets.items() if name != "ccb"}
    name = min(rivals, key=lambda each: rivals[each].value)
    return f"{LABELS[name]} {rivals[name].text()}"


def _table(regrets: Regrets, horizons: tuple[int, ...]) -> Table:
    rows = [[LABELS[name], *(found[t].text() for t in horizons)] for name, found in regrets.items()]
    return Table(["Copeland regret after", *(f"{t:,}" for t in horizons)], rows)


def _draw(laboratory: Laboratory, curves: list[Curve]) -> None:
    figure, axes = picture.panels(1, 1, 6.4, 4)
    panel = axes[0, 0]
    picture.add(panel, curves)
    picture.finish(
        panel, "five MSLR rankers, informational clicks", "duels", "cumulative Copeland regret"
    )
    panel.set_xlim(left=1000)
    best = max(max(curve.y) for curve in curves if curve.label not in {"RUCB", "SCB"})
    panel.set_ylim(0, 2 * best)
    panel.legend(frameon=False)
    picture.save(figure, laboratory.images / FILE)


EXPERIMENT = Experiment(
    name="copeland_figure_1",
    title="Copeland, Figure 1",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, section 6",
    claim="On five rankers without a Condorcet winner CCB has less regret than SCB, RUCB and the"
    " Copeland versions of SAVAGE, PBR and RankEl; RUCB's grows linearly.",
    matrices=(INFORMATIONAL,),
    run=run,
)
