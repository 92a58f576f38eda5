"""The cost of one step of a policy: observe one duel, propose the next, ask for the champion.

    python benchmarks/policy_cost.py [--policy rucb] [--arms 6 16 64] [--duels 20000]

The reference is textbook RUCB in plain numpy, which computes all K x K bounds at every step. The
best of several runs counts, because other load on the machine only adds.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from streamduel import policies

HORIZON = 1_000_000
"""For policies that need one: longer than any run here."""

Step = Callable[[int, int, float], tuple[int, int]]
"""Observe one outcome and propose the next pair."""


def preferences(n_arms: int) -> npt.NDArray[np.float64]:
    """Arms in a row, each beating the later ones by 0.02 to 0.2."""
    rank = np.arange(n_arms)
    steps = rank - rank[:, None]
    chances: npt.NDArray[np.float64] = 0.5 + 0.02 * np.sign(steps) + 0.18 * steps / n_arms
    return chances


def with_policy(name: str, n_arms: int) -> Step:
    """A step of a policy of streamduel."""
    required = [one.name for one in policies.get(name).declared.values() if one.required]
    policy = policies.create(name, n_arms, seed=1, **dict.fromkeys(required, HORIZON))

    def step(first: int, second: int, first_wins: float) -> tuple[int, int]:
        policy.observe(first, second, first_wins)
        policy.champion()
        pair = policy.propose()
        return pair.item(0), pair.item(1)

    return step


def textbook(n_arms: int) -> Step:
    """A step of textbook RUCB."""
    wins = np.zeros((n_arms, n_arms))
    random = np.random.default_rng(1)
    time_steps = 0

    def step(first: int, second: int, first_wins: float) -> tuple[int, int]:
        nonlocal time_steps
        time_steps += 1
        if first != second:
            wins[first, second] += first_wins
            wins[second, first] += 1 - first_wins
        played = wins + wins.T
        with np.errstate(divide="ignore", invalid="ignore"):
            means = wins / played
            bonus = np.sqrt(0.51 * np.log(time_steps + 1) / played)
        upper = np.where(played > 0, means + bonus, 2.0)
        np.fill_diagonal(upper, 0.5)
        ((wins > wins.T).sum(axis=1)).argmax()  # the champion
        candidates = np.flatnonzero((upper >= 0.5).all(axis=1))
        champion = random.choice(candidates) if len(candidates) else random.integers(n_arms)
        against = upper[:, champion]
        best = np.flatnonzero(against == against.max())
        best = best[best != champion] if len(best) > 1 else best
        return int(champion), int(random.choice(best))

    return step


def microseconds_per_step(step: Step, n_arms: int, duels: int) -> float:
    """The mean time of a step over a whole run."""
    chances = preferences(n_arms).tolist()
    luck = np.random.default_rng(2).random(duels).tolist()
    first, second = 0, 1
    began = time.process_time()
    for chance in luck:
        first, second = step(first, second, float(chance < chances[first][second]))
    return (time.process_time() - began) / duels * 1e6


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--policy", choices=policies.names(), nargs="+", default=["rucb"])
    arguments.add_argument("--arms", type=int, nargs="+", default=[6, 16, 64])
    arguments.add_argument("--duels", type=int, default=20_000)
    arguments.add_argument("--repeat", type=int, default=5)
    given = arguments.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(f"{'policy':<10}{'K':>5}{'µs per step':>14}{'textbook µs':>14}{'ratio':>8}")
    for n_arms in given.arms:
        slow = min(
            microseconds_per_step(textbook(n_arms), n_arms, given.duels // 4)
            for _ in range(given.repeat)
        )
        for name in given.policy:
            fast = min(
                microseconds_per_step(with_policy(name, n_arms), n_arms, given.duels)
                for _ in range(given.repeat)
            )
            print(f"{name:<10}{n_arms:>5}{fast:>14.2f}{slow:>14.2f}{slow / fast:>8.1f}")


if __name__ == "__main__":
    main()
