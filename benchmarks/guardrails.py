"""The cost of caps and floors: tables and plot of docs/measurements.md.

    python -m benchmarks.guardrails [--runs 20] [--out docs] [--quick]

Simulated services draw pairs by the shares that an assignment would have; policy, plan and
guardrails are those of the stream.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.papers.picture import Curve, add, finish, panels, save
from benchmarks.policy_regret import PAGE, put_in
from streamduel import policies
from streamduel.config.experiment import GuardrailSettings
from streamduel.preference.regret import regrets
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV, ARXIV_RANKERS
from streamduel.simulation.seeds import arrangement, run_seeds
from streamduel.stream import plan as plans
from streamduel.stream.guardrails import Guardrails, guarded_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEED: Final = 2026
POLICY: Final = "rmed1"
"""Plans in a seventh of the time of Double Thompson Sampling."""
SLATE: Final = 20
"""Duels between two decisions, and as many proposed at each."""
HORIZON: Final = 100_000
EARLY: Final = 1_000
"""Early impressions, with little evidence: the case for a cap."""
BEST: Final = ARXIV_RANKERS[0]
POOREST: Final = ARXIV_RANKERS[-1]
"""The arm with the largest gap: no other hold-out costs as much."""

FREE: Final = GuardrailSettings()
CAPS: Final = {"none": FREE} | {
    f"{cap}": GuardrailSettings(max_share=cap) for cap in (0.5, 0.2, 0.1)
}
FLOORS: Final = {"0": FREE} | {
    f"{floor}": GuardrailSettings(control_arm=POOREST, min_share=floor)
    for floor in (0.05, 0.1, 0.2)
}


class Outcome(NamedTuple):
    """The result of one run.

    Attributes:
        regret: of all impressions.
        early: of the first `EARLY` impressions.
        held_out: of those that the control arm had to itself.
        shown: impressions with the worst arm.
        shown_early: those among the first.
        settled: impressions until the champion was the best arm, and remained so.
    """

    regret: float
    early: float
    held_out: float
    shown: int
    shown_early: int
    settled: int


def play(settings: GuardrailSettings, horizon: int, run: int) -> Outcome:
    """One run; equal numbers have equal seeds, whatever the guardrails."""
    arms = arrangement(SEED, run, len(ARXIV_RANKERS))
    seeds = run_seeds(SEED, run, POLICY)
    names, cells = [ARXIV_RANKERS[arm] for arm in arms], np.ix_(arms, arms)
    index = {name: place for place, name in enumerate(names)}
    environment = MatrixEnvironment(ARXIV[cells], seed=seeds.environment)
    cost = regrets(environment.preferences, "condorcet")
    policy = policies.create(POLICY, len(arms), seed=seeds.policy)
    services = np.random.default_rng(seeds.delay)
    rails = Guardrails(settings)
    poorest = index[POOREST]
    regret = early = 0.0
    shown = shown_early = settled = 0
    while policy.duels < horizon:
        plan = plans.slate(policy, names, SLATE)
        rails.watch(plan, index)
        pairs = guarded_shares(plan, settings)
        places = np.array([(index[pair.a], index[pair.b]) for pair in pairs])
        drawn = services.choice(len(pairs), SLATE, p=[pair.share for pair in pairs])
        first, second = places[drawn].T
        policy.observe(first, second, environment.outcomes(first, second))
        rails.count_many(first, second)
        regret += float(cost[first, second].sum())
        shown += int(((first == poorest) | (second == poorest)).sum())
        if policy.duels <= EARLY:
            early, shown_early = regret, shown
        if plan.champion != BEST:
            settled = policy.duels
    held_out = rails.served.get((POOREST, POOREST), 0) * cost[poorest, poorest]
    return Outcome(regret, early, float(held_out), shown, shown_early, settled)


Measured = Mapping[str, Sequence[Outcome]]


def measure(
    rows: Mapping[str, GuardrailSettings], what: str, horizon: int, runs: int
) -> dict[str, list[Outcome]]:
    """All runs of some guardrails."""
    found = {}
    for label, settings in rows.items():
        found[label] = [play(settings, horizon, run) for run in range(runs)]
        mean, error = mean_of([each.regret for each in found[label]])
        print(f"{what} {label}: {mean:,.0f} ± {error:,.0f}", file=sys.stderr, flush=True)
    return found


def mean_of(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5


def interval(values: Sequence[float]) -> str:
    """The mean and its standard error, in a table."""
    mean, error = mean_of(values)
    return f"{mean:,.0f} ± {error:,.0f}"


def settled_in(runs: Sequence[Outcome]) -> str:
    """The impressions until the champion is right, in a table."""
    impressions = sorted(each.settled for each in runs)
    middle = statistics.median(impressions)
    return f"{middle:,.0f} ({impressions[0]:,}–{impressions[-1]:,})"


def table_of_caps(found: Measured, horizon: int) -> list[str]:
    """Markdown."""
    lines = [
        f"| `max_share` | regret of the first {EARLY:,} impressions | of all {horizon:,}"
        f" | `{POOREST}` was in so many of the first {EARLY:,} | of all {horizon:,} | impressions"
        " until the champion is the best arm permanently, median (range) |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for label, runs in found.items():
        cells = [
            interval([each.early for each in runs]),
            interval([each.regret for each in runs]),
            interval([each.shown_early for each in runs]),
            interval([each.shown for each in runs]),
            settled_in(runs),
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


def table_of_floors(found: Measured, horizon: int) -> list[str]:
    """Markdown."""
    lines = [
        f"| `min_share` of `{POOREST}` | regret of all {horizon:,} impressions | of it, the control"
        " arm alone | of it, the rest | impressions until the best arm stays champion,"
        " median (range) |",
        "|--:|--:|--:|--:|--:|",
    ]
    for label, runs in found.items():
        cells = [
            interval([each.regret for each in runs]),
            interval([each.held_out for each in runs]),
            interval([each.regret - each.held_out for each in runs]),
            settled_in(runs),
        ]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return lines


class Axis(NamedTuple):
    """A series of the plot.

    Attributes:
        title: below the panel.
        places: of each of the guardrails.
        found: its runs.
    """

    title: str
    places: Sequence[float]
    found: Measured

    def finish(self, panel: Axes, title: str) -> None:
        """Set up a panel that has this axis."""
        finish(panel, title, self.title, log_x=False)
        panel.set_xticks(self.places, list(self.found))
        panel.set_ylim(bottom=0)
        panel.legend(fontsize=8, frameon=False)


def draw_regret(panel: Axes, axis: Axis, kinds: Mapping[str, str]) -> None:
    """A line for each kind of regret; grey, a standard error up and down."""
    for place, (kind, label) in enumerate(kinds.items()):
        points = [mean_of([getattr(each, kind) for each in runs]) for runs in axis.found.values()]
        low = [mean - error for mean, error in points]
        high = [mean + error for mean, error in points]
        means = [mean for mean, _ in points]
        add(panel, [Curve(label, place, axis.places, means, apart=True)])
        panel.vlines(axis.places, low, high, color="#555555", linewidth=1)
    axis.finish(panel, "regret")


def draw_settled(panel: Axes, axis: Axis) -> None:
    """The impressions until the champion is right: each run, and the median."""
    for place, runs in zip(axis.places, axis.found.values(), strict=True):
        panel.plot([place] * len(runs), [each.settled for each in runs], ".", color="#999999")
    middle = [statistics.median(each.settled for each in runs) for runs in axis.found.values()]
    add(panel, [Curve("median of the runs", 2, axis.places, middle, apart=True)])
    axis.finish(panel, "impressions until the champion is right")


def draw(caps: Measured, floors: Measured, path: Path) -> None:
    """The cost of each guardrail, in regret and in time."""
    figure, grid = panels(2, 2, 7.2, 5.6)
    cap = Axis("max_share", range(len(caps)), caps)
    floor = Axis(f"min_share of {POOREST}", [float(label) for label in floors], floors)
    draw_regret(grid[0][0], cap, {"regret": "all impressions", "early": f"the first {EARLY:,}"})
    draw_regret(grid[1][0], floor, {"regret": "all", "held_out": f"{POOREST} alone"})
    draw_settled(grid[0][1], cap)
    draw_settled(grid[1][1], floor)
    save(figure, path)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the page and the plot."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    arguments.add_argument("--quick", action="store_true", help="a trial run")
    options = arguments.parse_args(given)
    horizon = 2 * EARLY if options.quick else HORIZON
    caps = measure(CAPS, "max_share", horizon, options.runs)
    rest = {label: settings for label, settings in FLOORS.items() if settings is not FREE}
    floors = {"0": caps["none"], **measure(rest, "min_share", horizon, options.runs)}
    lines = [*table_of_caps(caps, horizon), "", *table_of_floors(floors, horizon)]
    put_in(options.out / PAGE, "guardrails", lines)
    draw(caps, floors, options.out / "images" / "guardrails.png")


if __name__ == "__main__":
    main()
