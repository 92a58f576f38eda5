"""Duels to the answer with delayed outcomes, and with ties."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks.measure import tell
from benchmarks.research.play import play
from benchmarks.research.worlds import World, draw, worlds
from streamduel.policies.top_two import TopTwo
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.run import DelayedRun
from streamduel.simulation.seeds import arrangement, run_seeds

SLATE: Final = 100
TIES: Final = (0.0, 0.05, 0.3)
CHOSEN: Final = (("Bradley-Terry, narrow", 16), ("random, a winner", 12), ("cycle", 9))
"""The matrices, besides arXiv."""


def delayed(world: World, run: int, in_flight: int, limit: int) -> int | None:
    """Duels served until the policy has its answer; None if not by the limit."""
    arms = arrangement(world.seed, run, world.n_arms)
    seeds = run_seeds(world.seed, run, "top_two")
    policy = TopTwo(world.n_arms, seed=seeds.policy)
    environment = MatrixEnvironment(world.preferences[np.ix_(arms, arms)], seed=seeds.environment)
    way = DelayedRun(policy, environment, FixedDelay(in_flight), slate=SLATE, seed=seeds.delay)
    while way.t < limit:
        way.advance(min(limit, way.t + 20))
        if policy.finished or policy.elimination.against.min() >= policy.out_at:
            return way.t
    return None


def measure(runs: int, in_flight: int, limit: int, small: bool = False) -> dict[str, Any]:
    """Delay and ties on some matrices."""
    chosen = [world for world in worlds(6) if world.family == "arXiv"]
    chosen += [] if small else [draw(*each, "held out") for each in CHOSEN]
    rows = []
    for world in chosen:
        late = [delayed(world, run, in_flight, limit) for run in range(runs)]
        times = {"delayed": _median(late, limit)}
        for ties in TIES:
            answers = [play(world, "top_two", {}, run, (), limit, ties) for run in range(runs)]
            times[f"ties {ties:g}"] = _median([each.answered for each in answers], limit)
        rows.append({"name": f"{world.family}, K = {world.n_arms}", **times})
        tell(f"{rows[-1]}")
    return {"runs": runs, "in_flight": in_flight, "slate": SLATE, "limit": limit, "rows": rows}


def _median(times: list[int | None], limit: int) -> float:
    return float(np.median([limit if each is None else each for each in times]))
