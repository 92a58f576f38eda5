"""The regret of each policy on six preference matrices: the table of docs/measurements.md.

    python -m benchmarks.policy_regret [--runs 20] [--jobs 2] [--page docs/measurements.md]

An interrupted measurement resumes: finished runs are in the user's cache folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.policy_cost import microseconds_per_step, with_policy
from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.matrices import ARXIV, bradley_terry
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate

PAGE: Final = "measurements.md"
"""The page of docs/ with the tables of all measurements."""

HORIZON: Final = 100_000
SEED: Final = 2026


@dataclass(frozen=True)
class World:
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


def arithmetic() -> Floats:
    """Eight arms in order, p_ij = 1/2 + 0.05 (j - i)."""
    rank = np.arange(8)
    ordered: Floats = np.asarray(0.5 + 0.05 * (rank[None, :] - rank[:, None]), dtype=np.float64)
    return ordered


WORLDS: Final = [
    World("arXiv, K = 6", np.asarray(ARXIV)),
    World("in order, K = 8", arithmetic()),
    World("Bradley-Terry, K = 64", bradley_terry(np.linspace(3, 0, 64).tolist())),
    World("no winner, K = 5 (Copeland)", cycle(), "copeland"),
    World("arXiv, 5 % ties", np.asarray(ARXIV), options={"ties": 0.05}),
    World("arXiv, 1,000 in flight", np.asarray(ARXIV), options={"delay": FixedDelay(1_000)}),
]


def column(world: World, runs: int, jobs: int) -> dict[str, tuple[float, float]]:
    """Mean regret and its standard error, by policy."""
    settings = Settings(
        world.preferences,
        [(name, {}) for name in policies.names()],
        horizon=HORIZON,
        runs=runs,
        seed=SEED,
        regret=world.regret,
        **world.options,
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "streamduel"
    cache.mkdir(parents=True, exist_ok=True)
    journal = cache / f"policy-regret-{WORLDS.index(world)}-{runs}.jsonl"
    done = -1

    def show(finished: int, total: int) -> None:
        nonlocal done
        if finished * 20 // total != done:
            done = finished * 20 // total
            print(f"{world.title}: {finished} of {total} runs", file=sys.stderr, flush=True)

    results = simulate(settings, jobs=jobs, journal=journal, progress=show)
    return {one.name: (one.mean[-1], one.std_error[-1]) for one in results.policies()}


def table(columns: list[dict[str, tuple[float, float]]]) -> list[str]:
    """Markdown, with the three best of each column in bold."""
    heads = ["policy", *(world.title for world in WORLDS), "µs, K = 6", "µs, K = 64"]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    best = [sorted(mean for mean, _ in cells.values())[2] for cells in columns]
    for name in policies.names():
        cells = []
        for measured, limit in zip(columns, best, strict=True):
            mean, error = measured[name]
            text = f"{mean:,.0f} ± {error:,.0f}"
            cells.append(f"**{text}**" if mean <= limit else text)
        costs = [microseconds_per_step(with_policy(name, k), k, 10_000) for k in (6, 64)]
        lines.append(
            f"| `{name}` | " + " | ".join([*cells, *(f"{cost:.0f}" for cost in costs)]) + " |"
        )
    return lines


def put_in(page: Path, name: str, lines: list[str]) -> None:
    """Replace the lines between the marks of one measurement."""
    begin, end = f"<!-- measured {name}: begin -->", f"<!-- measured {name}: end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(before + "\n".join([begin, "", *lines, "", end]) + after, encoding="utf-8")


def main() -> None:
    """Measure, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--page", type=Path, default=Path("docs/measurements.md"))
    given = arguments.parse_args()
    columns = [column(world, given.runs, given.jobs) for world in WORLDS]
    put_in(given.page, "policies", table(columns))


if __name__ == "__main__":
    main()
