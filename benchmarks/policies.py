"""The cost of one step of each policy, measured by `policy_cost.py`, as a table.

python benchmarks/policies.py [--quick]
"""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Spread, in_turns, ratios
from benchmarks.policy_cost import microseconds_per_step, textbook, with_policy
from benchmarks.report import Result, alone
from streamduel import policies

ARMS = (6, 16, 64)

METHOD = """\
`benchmarks/policy_cost.py`: observe one duel, ask for the champion, propose the next pair, over a
whole run from its start. The reference is textbook RUCB in plain numpy, which computes all K × K
bounds at every step. Policy and reference alternate; the ratio is within each turn."""


def textbook_cost(n_arms: int, duels: int) -> float:
    """The textbook."""
    return microseconds_per_step(textbook(n_arms), n_arms, duels)


def policy_cost(name: str, n_arms: int, duels: int) -> float:
    """A policy of streamduel."""
    return microseconds_per_step(with_policy(name, n_arms), n_arms, duels)


def measure(quick: bool) -> list[Result]:
    """Measure all policies for some K."""
    duels = 2000 if quick else 20_000
    rows = []
    for n_arms in ARMS:
        runs = {f"textbook, K = {n_arms}": partial(textbook_cost, n_arms, duels // 4)}
        for name in policies.names():
            runs[f"{name}, K = {n_arms}"] = partial(policy_cost, name, n_arms, duels)
        (_, slow), *ours = in_turns(runs, 3 if quick else 7).items()
        for name, fast in ours:
            rows.append(
                [name, Spread.of(fast).text(), Spread.of(slow).text(), ratios(slow, fast).text(1)]
            )
    columns = ["policy", "µs per step", "textbook RUCB, µs", "textbook ÷ policy"]
    return [Result("One step of a policy", METHOD, columns, rows)]


if __name__ == "__main__":
    alone(measure, __doc__)
