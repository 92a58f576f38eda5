"""Every policy on five matrices: a table of `policy_regret`. It takes hours."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.policy_cost import microseconds_per_step, with_policy
from benchmarks.worlds import arithmetic
from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.simulation.matrices import ARXIV, bradley_terry
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate

HORIZON: Final = 100_000
SEED: Final = 2026


@dataclass(frozen=True)
class Column:
    """A column of the table."""

    title: str
    preferences: Floats
    regret: str = "condorcet"
    options: Mapping[str, Any] = field(default_factory=dict)


def cycle() -> Floats:
    """Three arms in a cycle, each of which beats the other two arms: no Condorcet winner."""
    p = np.full((5, 5), 0.5)
    stronger = {(0, 1): 0.6, (1, 2): 0.65, (2, 0): 0.65, (3, 4): 0.6}
    stronger |= {(top, low): 0.7 for top in range(3) for low in (3, 4)}
    for (winner, loser), chance in stronger.items():
        p[winner, loser], p[loser, winner] = chance, 1 - chance
    return p


COLUMNS: Final = [
    Column("arXiv, K = 6", np.asarray(ARXIV)),
    Column("in order, K = 8", arithmetic()),
    Column("Bradley-Terry, K = 64", bradley_terry(np.linspace(3, 0, 64).tolist())),
    Column("no winner, K = 5 (Copeland)", cycle(), "copeland"),
    Column("arXiv, 5 % ties", np.asarray(ARXIV), options={"ties": 0.05}),
]


def measured(given: Column, runs: int) -> dict[str, tuple[float, float]]:
    """Mean regret and its standard error, by policy."""
    settings = Settings(
        given.preferences,
        [(name, {}) for name in policies.names()],
        horizon=HORIZON,
        runs=runs,
        seed=SEED,
        regret=given.regret,
        **given.options,
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "streamduel"
    cache.mkdir(parents=True, exist_ok=True)
    journal = cache / f"policy-regret-{COLUMNS.index(given)}-{runs}.jsonl"
    results = simulate(settings, journal=journal)
    print(given.title, file=sys.stderr, flush=True)
    return {one.name: (one.mean[-1], one.std_error[-1]) for one in results.policies()}


def table(runs: int) -> list[str]:
    """Markdown, with the three best of each column in bold."""
    columns = [measured(each, runs) for each in COLUMNS]
    heads = ["policy", *(each.title for each in COLUMNS), "µs, K = 6", "µs, K = 64"]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    best = [sorted(mean for mean, _ in cells.values())[2] for cells in columns]
    for name in policies.names():
        cells = []
        for found, limit in zip(columns, best, strict=True):
            mean, error = found[name]
            text = f"{mean:,.0f} ± {error:,.0f}"
            cells.append(f"**{text}**" if mean <= limit else text)
        costs = [microseconds_per_step(with_policy(name, k), k, 10_000) for k in (6, 64)]
        lines.append(
            f"| `{name}` | " + " | ".join([*cells, *(f"{cost:.0f}" for cost in costs)]) + " |"
        )
    return lines
