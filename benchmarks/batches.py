"""Regret against the number of batches; writes a table and a figure of docs/policies.md.

python -m benchmarks.batches
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.papers.picture import Curve, add, finish, panels, save
from benchmarks.policy_regret import put_in, rows
from benchmarks.worlds import SEED, World, drawn, published
from streamduel import policies
from streamduel.preference.regret import regrets
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import start_run
from streamduel.simulation.seeds import arrangement, run_seeds

HORIZON: Final = 100_000
ROUNDS: Final = (5, 10, 20, 50, 100)
BATCHED: Final = ("batched_top_two", "c2b", "pcomp")
SEQUENTIAL: Final = ("top_two", "double_thompson")
WORLDS: Final = ("arxiv", "bt6a", "bt16a", "winner12a")
PAGE: Final = Path("policies.md")
FIGURE: Final = Path("images") / "batches.png"


def regret(world: World, name: str, run: int, **parameters: Any) -> float:
    """The regret of one run."""
    arms = arrangement(SEED, run, len(world.preferences))
    seeds, cells = run_seeds(SEED, run, name), np.ix_(arms, arms)
    policy = policies.create(name, len(arms), seed=seeds.policy, **parameters)
    environment = MatrixEnvironment(world.preferences[cells], seed=seeds.environment)
    course = start_run(policy, environment)
    course.advance(HORIZON)
    return float((regrets(world.preferences, world.regret)[cells] * course.plays).sum())


def mean_regret(world: World, name: str, runs: int, **parameters: Any) -> float:
    """The mean of some runs."""
    return float(np.mean([regret(world, name, run, **parameters) for run in range(runs)]))


def measure(runs: int) -> dict[str, dict[str, list[float]]]:
    """By the title of a matrix and policy, the mean regret for each number of batches."""
    worlds = published(None) | drawn()
    found: dict[str, dict[str, list[float]]] = {}
    for world in (worlds[name] for name in WORLDS):
        of_world = found.setdefault(world.title, {})
        for name in BATCHED:
            of_world[name] = [
                mean_regret(world, name, runs, horizon=HORIZON, rounds=rounds) for rounds in ROUNDS
            ]
        for name in SEQUENTIAL:
            few = runs if name == SEQUENTIAL[0] else max(2, runs // 10)  # D-TS takes minutes
            of_world[name] = [mean_regret(world, name, few)]
    return found


def table(found: dict[str, dict[str, list[float]]], runs: int) -> list[str]:
    """A row for each matrix and policy, a column for each number of batches."""
    cells = []
    for title, by_policy in found.items():
        least = by_policy[SEQUENTIAL[0]][0]
        for name in BATCHED:
            texts = [f"{each:,.0f} ({each / least:.1f} ×)" for each in by_policy[name]]
            cells.append([title, f"`{name}`", *texts, ""])
        for name in SEQUENTIAL:
            alone = by_policy[name][0]
            cells.append([title, f"`{name}`", *[""] * len(ROUNDS), f"{alone:,.0f}"])
    lead = (
        f"Mean regret after {HORIZON:,} duels, {runs} runs ({max(2, runs // 10)} of "
        "`double_thompson`), and as a multiple of `top_two` without batches:"
    )
    heads = ["matrix", "policy", *(f"{rounds} batches" for rounds in ROUNDS), "none"]
    return [lead, "", *rows(heads, cells)]


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """A panel for each matrix."""
    figure, axes = panels(1, len(found), 3.0 * len(found), 2.9)
    for panel, (title, by_policy) in zip(axes[0], found.items(), strict=True):
        curves = [
            Curve(name, place, ROUNDS, by_policy[name], apart=True)
            for place, name in enumerate(BATCHED)
        ]
        for place, name in enumerate(SEQUENTIAL, len(BATCHED)):
            level = by_policy[name] * 2
            curves.append(Curve(f"{name}, no batches", place, [ROUNDS[0], ROUNDS[-1]], level))
        add(panel, curves)
        finish(panel, title, "batches", "regret")
        panel.set_yscale("log")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    save(figure, path)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the page and the figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=40)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    options = arguments.parse_args(given)
    found = measure(options.runs)
    put_in(options.out / PAGE, "rounds", table(found, options.runs))
    draw(found, options.out / FIGURE)


if __name__ == "__main__":
    main()
