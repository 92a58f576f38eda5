"""Processor time of a decision, and of a compiled step."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.measure import in_turns
from benchmarks.policy_cost import preferences
from streamduel import policies
from streamduel.simulation.compiled.top_two import TopTwoRun
from streamduel.simulation.environment import MatrixEnvironment

POLICIES: Final = ("top_two", "top_two, earn", "rmed1", "double_thompson")
EXPLORED: Final = 64
"""Up to so many arms, all pairs have been compared before the measurement."""

ARMS: Final = (6, 16, 64, 500)
COMPILED_ARMS: Final = 16


def of_decision(name: str, n_arms: int, duels: int) -> float:
    """µs to propose one duel and observe its outcome, after as many duels as there are pairs.

    RMED1 begins with a duel of each pair, which it does not compute. With very many arms the
    measurement is from the start of a run.
    """
    chances = preferences(n_arms).tolist()
    label, *aim = name.split(", ")
    policy = policies.create(label, n_arms, seed=1, **({"aim": aim[0]} if aim else {}))
    before = n_arms * (n_arms - 1) // 2 if n_arms <= EXPLORED else 0
    luck = np.random.default_rng(2).random(before + duels).tolist()
    began = time.process_time()
    for step, chance in enumerate(luck):
        if step == before:
            began = time.process_time()
        pair = policy.propose()
        first, second = pair.item(0), pair.item(1)
        policy.observe(first, second, float(chance < chances[first][second]))
    return (time.process_time() - began) / duels * 1e6


def of_compiled_step(duels: int) -> float:
    """µs of a compiled step; the arms are equal, so there is no answer to cut it short."""
    policy = policies.create("top_two", COMPILED_ARMS, seed=1)
    way = TopTwoRun(policy, MatrixEnvironment(np.full((COMPILED_ARMS, COMPILED_ARMS), 0.5), seed=1))
    way.advance(100)  # compile
    began = time.process_time()
    way.advance(100 + duels)
    return (time.process_time() - began) / duels * 1e6


def measure(duels: int, turns: int, most_arms: int) -> dict[str, Any]:
    """Each policy in turn; the median of the turns, and of the ratios within a turn."""
    rows = []
    for n_arms in ARMS:
        if n_arms > most_arms:
            continue
        few = max(20, duels // (n_arms // 64 or 1) // (10 if n_arms > 64 else 1))
        runs = {name: partial(of_decision, name, n_arms, few) for name in POLICIES}
        found = in_turns(runs, turns)
        ours = found["top_two"]
        rows.append(
            {
                "n_arms": n_arms,
                "duels": few,
                "cost": {name: median(each) for name, each in found.items()},
                "ratio": {
                    name: median(a / b for a, b in zip(ours, each, strict=True))
                    for name, each in found.items()
                },
            }
        )
    step = median(of_compiled_step(20 * duels) for _ in range(turns))
    return {"rows": rows, "turns": turns, "compiled": step}
