"""How the policies compare on matrices that none was tuned on: tables of docs/measurements.md.

    python -m benchmarks.policy_regret [--runs 100] [--matrices FOLDER] [--only TABLE …]

An interrupted measurement resumes: finished runs are in the user's cache folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks import every_policy
from benchmarks.worlds import World, drawn, published
from streamduel import policies
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import start_run
from streamduel.simulation.seeds import arrangement, run_seeds
from streamduel.simulation.settings import PolicySpec, Settings
from streamduel.simulation.simulate import simulate

PAGE: Final = "measurements.md"
"""The page of docs/ with the tables of all measurements."""

ADVICE: Final = "policies.md"
"""The page of docs/ with the tables that advice rests on."""

SEED: Final = 2026
LARGE: Final = 30
"""Arms from which on there are fewer runs."""

Variant = tuple[str, Mapping[str, Any]]
"""A policy and its parameters."""

COMPARED: Final[list[Variant]] = [
    ("top_two", {}),
    ("top_two", {"aim": "earn"}),
    ("double_thompson", {}),
    ("rmed1", {}),
    ("rucb", {}),
    ("ccb", {}),
    ("c2b", {}),
]
"""The policies that are measured on all matrices."""

DELAYED: Final = ("top_two", "double_thompson", "rmed1", "rucb", "c2b")
IN_FLIGHT: Final = (0, 100, 1_000)

IN_DELAY: Final = ("arxiv", "bt16a", "winner12a", "none8a")
IN_BATCHES: Final = ("arxiv", "mslr30", "bt64a")
ELIMINATIONS: Final = ("kl", "kl_anytime", "hoeffding")
MORE_ROUNDS: Final = (0, 6)


class Plan(NamedTuple):
    """The extent of the measurement.

    Attributes:
        runs: of a policy on a matrix of few arms.
        horizon: duels of each run.
        short: duels of the runs with and without delay.
    """

    runs: int
    horizon: int = 100_000
    short: int = 20_000

    def times(self, policy: str, world: World) -> int:
        """The runs of a policy on a matrix: fewer where they take long."""
        part = 1 if len(world.preferences) < LARGE else 5
        return max(2, self.runs // (2 * part if policy == "double_thompson" else part))


class Measured(NamedTuple):
    """Runs of a policy on a matrix.

    Attributes:
        regret: of each run, at its end.
        right: how many ended with the right champion.
    """

    regret: list[float]
    right: int

    @property
    def mean(self) -> float:
        """The mean regret."""
        return float(np.mean(self.regret))

    def figures(self) -> str:
        """Mean, median, 95 % and 99 % of the regret, and how often the champion was wrong."""
        middle, high, highest = np.percentile(
            self.regret, [50, 95, 99 if len(self.regret) > 99 else 100]
        )
        text = f"**{self.mean:,.0f}** · {middle:,.0f} · {high:,.0f} · {highest:,.0f}"
        wrong = len(self.regret) - self.right
        return f"{text} ({wrong / len(self.regret):.0%} wrong)" if wrong else text


@dataclass
class Laboratory:
    """Runs, of which finished ones are read from a folder.

    Attributes:
        plan: the extent.
        worlds: the matrices by their short names.
        cache: the folder.
    """

    plan: Plan
    worlds: Mapping[str, World]
    cache: Path

    def runs(
        self, name: str, variant: Variant, runs: int, horizon: int, in_flight: int = 0
    ) -> Measured:
        """The runs of a policy on a matrix."""
        world = self.worlds[name]
        settings = Settings(
            world.preferences,
            [variant],
            horizon=horizon,
            runs=runs,
            seed=SEED,
            regret=world.regret,
            delay=FixedDelay(in_flight) if in_flight else None,
            slate=max(1, in_flight // 10),
            per_decade=1,
        )
        results = simulate(
            settings, journal=self.cache / f"regret-{variant[0]}-{name}-{horizon}-{in_flight}.jsonl"
        )
        print(f"{name}, {settings.labels()[0]}", file=sys.stderr, flush=True)
        right = round(runs * results.policies()[0].champion_accuracy[-1])
        return Measured([regret[-1] for regret in results.regrets(0)], right)


def label(variant: Variant) -> str:
    """A policy with the parameters that are not defaults."""
    name, params = variant
    values = ", ".join(f"{key}: {value}" for key, value in params.items())
    return f"`{name}`" + (f", `{values}`" if values else "")


def rows(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Markdown."""
    rule = "|---" + "|--:" * (len(heads) - 1) + "|"
    return ["| " + " | ".join(heads) + " |", rule, *("| " + " | ".join(c) + " |" for c in cells)]


def compared(laboratory: Laboratory) -> list[str]:
    """A row for each matrix, a column for each compared policy."""
    plan, cells = laboratory.plan, []
    for name, world in laboratory.worlds.items():
        texts = [world.title]
        for variant in COMPARED:
            times = plan.times(variant[0], world)
            texts.append(laboratory.runs(name, variant, times, plan.horizon).figures())
        cells.append(texts)
    return [
        f"{plan.runs} runs, a fifth of them with {LARGE} arms or more; half as many of"
        " `double_thompson`.",
        "",
        *rows(["matrix", *(label(each) for each in COMPARED)], cells),
    ]


def delays(laboratory: Laboratory) -> list[str]:
    """A row for each matrix, a column for each policy: regret by the duels in flight."""
    plan, cells = laboratory.plan, []
    runs = max(4, plan.runs // 10)
    for name in IN_DELAY:
        texts = [laboratory.worlds[name].title]
        for policy in DELAYED:
            found = [
                laboratory.runs(name, (policy, {}), runs, plan.short, late) for late in IN_FLIGHT
            ]
            texts.append(" · ".join(f"{each.mean:,.0f}" for each in found))
        cells.append(texts)
    return [
        f"Mean regret after {plan.short:,} duels with "
        + " · ".join(f"{late:,}" for late in IN_FLIGHT)
        + f" in flight, {runs} runs:",
        "",
        *rows(["matrix", *(f"`{policy}`" for policy in DELAYED)], cells),
    ]


def ending(world: World, spec: PolicySpec, run: int, horizon: int) -> tuple[float, str]:
    """The regret of a run of C2B, and whether it "lost" the winner, found it or is "open"."""
    arms = arrangement(SEED, run, len(world.preferences))
    seeds = run_seeds(SEED, run, spec.name)
    cells = np.ix_(arms, arms)
    policy = policies.create(spec.name, len(arms), seed=seeds.policy, **spec.params)
    environment = MatrixEnvironment(world.preferences[cells], seed=seeds.environment)
    course = start_run(policy, environment)
    course.advance(horizon)
    end, winner = course.policy(), condorcet_winner(world.preferences)
    assert isinstance(end, BatchedPolicy)
    truth = Settings(world.preferences, [spec], horizon=horizon, runs=1, seed=SEED).truths[0]
    regret = float((truth.regrets[cells] * course.plays).sum())
    if end.candidates() > 1:
        return regret, "open"
    return regret, "found" if arms[end.champion()] == winner else "lost"


def batches(laboratory: Laboratory) -> list[str]:
    """A row for each way to eliminate and number of batches, a column for each matrix."""
    plan, cells = laboratory.plan, []
    names = [name for name in IN_BATCHES if name in laboratory.worlds]
    base = policies.create("c2b", 2, horizon=plan.horizon).parameters["rounds"]
    for elimination in ELIMINATIONS:
        for more in MORE_ROUNDS:
            params = {"elimination": elimination, "rounds": base + more}
            texts = [f"`{elimination}`", f"⌊ln T⌋ + {more}" if more else "⌊ln T⌋"]
            for name in names:
                world = laboratory.worlds[name]
                many = 10 * plan.runs if name == names[0] else plan.runs
                spec = PolicySpec("c2b", {"horizon": plan.horizon, **params})
                found = [ending(world, spec, run, plan.horizon) for run in range(many)]
                ends = [end for _, end in found]
                texts.append(
                    f"{np.mean([regret for regret, _ in found]):,.0f};"
                    f" {ends.count('lost'):,} of {many:,} wrong, {ends.count('open'):,} undecided"
                )
            cells.append(texts)
    few = max(2, plan.runs // 5)
    rivals: list[Variant] = [
        ("beat_the_mean", {}),
        ("beat_the_mean", {"gamma": 1.3, "tight": True}),
        ("rucb", {}),
    ]
    for variant in rivals:
        texts = [label(variant), ""]
        for name in names:
            texts.append(f"{laboratory.runs(name, variant, few, plan.horizon).mean:,.0f}")
        cells.append(texts)
    return rows(["elimination", "B", *(laboratory.worlds[name].title for name in names)], cells)


TABLES: Final = {
    "compared": (PAGE, compared),
    "delays": (ADVICE, delays),
    "batches": (PAGE, batches),
    "policies": (PAGE, lambda laboratory: every_policy.table(max(2, laboratory.plan.runs // 5))),
}
"""By the name of a table: its page, and how it is made."""

USUAL: Final = ("compared", "delays", "batches")
"""Measured unless others are named: some 20 minutes of processor time. `policies` takes hours."""


def put_in(page: Path, name: str, lines: list[str]) -> None:
    """Replace the lines between the marks of one measurement."""
    begin, end = f"<!-- measured {name}: begin -->", f"<!-- measured {name}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(before + "\n".join([begin, "", *lines, "", end]) + after, encoding="utf-8")


def main(given: list[str] | None = None) -> None:
    """Measure, and write the pages."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--matrices", type=Path, help="folder of the MSLR matrices")
    arguments.add_argument("--only", choices=TABLES, nargs="+", default=USUAL)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    arguments.add_argument("--runs", type=int, default=100)
    arguments.add_argument("--quick", action="store_true", help="few duels, as a trial")
    options = arguments.parse_args(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "streamduel"
    cache.mkdir(parents=True, exist_ok=True)
    worlds = published(options.matrices) | drawn()
    plan = Plan(options.runs, 500, 300) if options.quick else Plan(options.runs)
    laboratory = Laboratory(plan, worlds, cache)
    for name in options.only:
        page, make = TABLES[name]
        put_in(options.out / page, name, make(laboratory))


if __name__ == "__main__":
    main()
