"""Measure the bands: mean and deviation of one run's regret, per policy, matrix and checkpoint.

    python -m tests.statistics.textbook --out tests/statistics/bands.json

The result says, for each policy and matrix, {"horizon": T, "runs": R, "checkpoints": {t:
{"condorcet": [mean, deviation], "copeland": [mean, deviation]}}, "champion": share}: the condorcet
regret only where an arm beats all the others, and the share of runs whose champion at the last
checkpoint is a Copeland winner. Arms are shuffled in each run. Entries of an existing file
that are not measured again are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.statistics.textbook import POLICIES
from tests.statistics.textbook.history import Floats, Run
from tests.statistics.textbook.matrices import (
    MATRICES,
    condorcet_regret,
    copeland_regret,
    copeland_scores,
)


def measure(
    run: Run, preferences: Floats, horizon: int, checkpoints: list[int], runs: int
) -> dict[str, Any]:
    """One cell of the bands."""
    kinds = {"copeland": copeland_regret(preferences)}
    condorcet = condorcet_regret(preferences)
    if condorcet is not None:
        kinds["condorcet"] = condorcet
    scores = copeland_scores(preferences)
    regrets = {kind: np.zeros((runs, len(checkpoints))) for kind in kinds}
    right = 0
    for seed in range(runs):
        arms = np.random.default_rng(seed).permutation(len(preferences))
        chances = np.ascontiguousarray(preferences[np.ix_(arms, arms)])
        plays, champions = run(chances, horizon, np.array(checkpoints, dtype=np.int64), seed)
        for kind, regret in kinds.items():
            regrets[kind][seed] = (plays * regret[np.ix_(arms, arms)]).sum(axis=(1, 2))
        right += scores[arms[champions[-1]]] == scores.max()
    return {
        "horizon": horizon,
        "runs": runs,
        "checkpoints": {
            str(t): {
                kind: [short(regret[:, at].mean()), short(regret[:, at].std(ddof=1))]
                for kind, regret in regrets.items()
            }
            for at, t in enumerate(checkpoints)
        },
        "champion": short(right / runs),
    }


def short(number: float) -> float:
    """Five significant digits."""
    return float(f"{number:.5g}")


def write(bands: dict[str, dict[str, Any]], out: Path) -> None:
    """One line per policy and matrix, sorted."""
    policies = []
    for policy, cells in sorted(bands.items()):
        lines = [
            f"  {json.dumps(matrix)}: {json.dumps(cell, sort_keys=True)}"
            for matrix, cell in sorted(cells.items())
        ]
        policies.append(f" {json.dumps(policy)}: {{\n" + ",\n".join(lines) + "\n }")
    out.write_text("{\n" + ",\n".join(policies) + "\n}\n")


def main() -> None:
    """Measure the bands, print progress and write the file."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--policy", nargs="+", choices=sorted(POLICIES), default=list(POLICIES))
    arguments.add_argument("--matrix", nargs="+", choices=sorted(MATRICES), default=list(MATRICES))
    arguments.add_argument("--runs", type=int, default=2_000)
    arguments.add_argument("--horizon", type=int, default=10_000)
    arguments.add_argument("--checkpoints", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    for policy in given.policy:
        for matrix in given.matrix:
            began = time.perf_counter()
            cell = measure(
                POLICIES[policy], MATRICES[matrix], given.horizon, given.checkpoints, given.runs
            )
            seconds = time.perf_counter() - began
            print(f"{policy} {matrix} {seconds:.0f} s: {json.dumps(cell)}", flush=True)
            if given.out is not None:
                bands = json.loads(given.out.read_text()) if given.out.exists() else {}
                bands.setdefault(policy, {})[matrix] = cell
                write(bands, given.out)


if __name__ == "__main__":
    main()
