"""Top-two against the other policies on every matrix: regret, champions, duels to the answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.measure import tell
from benchmarks.research.play import Played, play
from benchmarks.research.worlds import World, ideal, worlds

DELTA: Final = 0.05
"""δ of the default confidence."""


class Contestant(NamedTuple):
    """A policy with its parameters.

    Attributes:
        label: in results.
        name: of the policy.
        params: of the policy.
        share: its part of the runs.
        most_arms: it is not measured with more, because it takes too long.
    """

    label: str
    name: str
    params: Mapping[str, Any]
    share: float
    most_arms: int = 10**9

    def runs(self, n_arms: int, runs: int) -> int:
        """The number of runs with so many arms."""
        if n_arms > self.most_arms:
            return 0
        few = 1.0 if n_arms <= 64 else 0.25
        if self.name == "double_thompson":  # a step takes time in proportion to K²
            few = 1.0 if n_arms <= 10 else 0.6 if n_arms <= 20 else 0.3
        return max(2, round(runs * self.share * few))


CONTESTANTS: Final = (
    Contestant("top_two", "top_two", {}, 1),
    Contestant("top_two, earn", "top_two", {"aim": "earn"}, 1),
    Contestant("double_thompson", "double_thompson", {}, 0.35, 64),
    Contestant("rmed1", "rmed1", {}, 0.5),
    Contestant("rucb", "rucb", {}, 0.25, 128),
    Contestant("ccb", "ccb", {}, 0.25, 64),
)


class Scale(NamedTuple):
    """The extent of the measurement.

    Attributes:
        runs: of each matrix.
        times: duels after which regret and champions are noted.
        patience: duels after which an answer counts as never.
        most_arms: of a matrix.
    """

    runs: int
    times: tuple[int, ...]
    patience: int
    most_arms: int


Results = dict[str, Any]


def measure(
    scale: Scale, folder: Path | None, labels: Collection[str], before: Results | None
) -> Results:
    """Some of the policies on all matrices.

    Args:
        scale: of the measurement.
        folder: of further matrices.
        labels: of the contestants.
        before: earlier results, of which the other contestants are kept.
    """
    kept = {_key(cell): cell["policies"] for cell in before["cells"]} if before else {}
    cells = []
    for world in worlds(scale.most_arms, folder):
        cell = {
            "family": world.family,
            "n_arms": world.n_arms,
            "half": world.half,
            "winner": world.winner is not None,
            "ideal": min(ideal(world.preferences, DELTA), 1e300),
        }
        fresh = contest(world, scale, labels)
        cell["policies"] = {**kept.get(_key(cell), {}), **fresh}
        cells.append(cell)
        finals = ", ".join(f"{label} {np.mean(one['final']):,.0f}" for label, one in fresh.items())
        tell(f"{world.name}: {finals}")
    return {"times": list(scale.times), "patience": scale.patience, "cells": cells}


def _key(cell: Results) -> tuple[Any, ...]:
    return cell["family"], cell["n_arms"], cell["half"]


def contest(world: World, scale: Scale, labels: Collection[str]) -> Results:
    """Contestants on a matrix; where all arms are equally good, only how fast it answers."""
    found = {}
    for each in CONTESTANTS:
        runs = each.runs(world.n_arms, scale.runs) if each.label in labels else 0
        answers = each.label == "top_two"
        if runs and (answers or len(world.winners) < world.n_arms):
            patience = scale.patience if answers else 0
            found[each.label] = summary(
                [
                    play(world, each.name, each.params, run, scale.times, patience)
                    for run in range(runs)
                ]
            )
    return found


def summary(played: Sequence[Played]) -> Results:
    """The runs of a policy on a matrix."""
    return {
        "final": [float(f"{each.regret[-1]:.4g}") for each in played],
        "regret": np.mean([each.regret for each in played], axis=0).round(2).tolist(),
        "right": np.mean([each.right for each in played], axis=0).round(3).tolist(),
        "alone": [each.alone for each in played],
        "answered": [each.answered for each in played],
        "wrong": sum(each.wrong for each in played),
    }


def far(scale: Scale, horizon: int) -> Results:
    """Whether any run is without an answer after very many duels, on a few matrices."""
    chosen = {
        ("arXiv", 6), ("Bradley-Terry, narrow", 16), ("near tie", 3), ("near tie", 8),
        ("random, a winner", 12), ("winner above a cycle", 10), ("cycle", 9),
        ("random, no winner", 10),
    }  # fmt: skip
    rows = []
    for world in worlds(scale.most_arms):
        if (world.family, world.n_arms) not in chosen or world.half == "tuned":
            continue
        played = [play(world, "top_two", {}, run, (), horizon) for run in range(scale.runs)]
        times = [each.answered for each in played if each.answered is not None]
        rows.append(
            {
                "name": world.name,
                "runs": len(played),
                "never": len(played) - len(times),
                "median": float(np.median(times)) if times else None,
                "longest": max(times, default=None),
                "wrong": sum(each.wrong for each in played),
            }
        )
        tell(f"far, {rows[-1]}")
    return {"horizon": horizon, "rows": rows}
