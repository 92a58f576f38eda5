"""Regret at the end of simulations, problem by problem."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.verdict import Measured, mean
from streamduel.simulation.results import Results


def finals(results: Sequence[Results], contestant: int) -> list[Measured]:
    """The regret of a policy at the horizon, for each problem.

    Args:
        results: one for each problem.
        contestant: the policy's place among those simulated.
    """
    return [mean([run[-1] for run in each.regrets(contestant)]) for each in results]


def average(finals: Sequence[Measured]) -> Measured:
    """The mean over the problems with equal weight; of one problem, over its runs."""
    return finals[0] if len(finals) == 1 else mean([each.value for each in finals])
