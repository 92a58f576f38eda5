"""Top-two with one part off or changed: duels to the answer, and regret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
from typing_extensions import override

from benchmarks.measure import tell
from benchmarks.research.play import kind_of_regret
from benchmarks.research.worlds import World, draw, worlds
from streamduel.policies.top_two import LOW, TopTwo
from streamduel.preference import elimination, evidence
from streamduel.preference.elimination import NO_MARKS, UNITS, Elimination, Marks
from streamduel.preference.regret import regrets
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.run import SteppedRun
from streamduel.simulation.seeds import arrangement, run_seeds


class LeastProven(TopTwo):
    """The challenger is the arm that the leader beats with the least evidence, without a draw."""

    @override
    def _race(self, out: Marks, t: int) -> tuple[int, int]:
        leader, _ = super()._race(out, t)
        self.elimination.settle()
        proven = self.elimination.safe[leader].copy()
        proven[leader] = np.inf
        return leader, int(proven.argmin())


class BestLeads(TopTwo):
    """The leader is the arm with the largest expected score, without a draw."""

    @override
    def _race(self, out: Marks, t: int) -> tuple[int, int]:
        with patch.object(self.posterior, "score_deviation", np.zeros(self.n_arms)):
            return super()._race(out, t)


class AllLead(TopTwo):
    """An arm that is out may lead."""

    @override
    def _race(self, out: Marks, t: int) -> tuple[int, int]:
        return super()._race(NO_MARKS, t)


class ActiveOnly(TopTwo):
    """No arm that is out challenges, as long as several are in."""

    @override
    def _race(self, out: Marks, t: int) -> tuple[int, int]:
        if out.number == self.n_arms - 1:
            return super()._race(out, t)
        mean = np.where(out.marks, LOW, self.posterior.mean)
        with patch.object(self.posterior, "mean", mean):
            return super()._race(out, t)


class Alone(Elimination):
    """One of the two sums of `Elimination` with the whole wealth."""

    product: bool

    @override
    def _count_all(self) -> None:
        super()._count_all()
        for arm in range(len(self.against)):
            self._alone(arm)

    @override
    def _set(self, arm: int, rival: int, on_arm: float) -> None:
        super()._set(arm, rival, on_arm)
        self._alone(rival)

    def _alone(self, arm: int) -> None:
        most = self.most[arm] - self.share
        self.against[arm] = self.units[arm] / UNITS if self.product else most


class Product(Alone):
    product = True


class Maximum(Alone):
    product = False


class WithWagers(TopTwo):
    """Other wagers than `Elimination`."""

    wagers: type[Elimination]

    @override
    def _begin(self) -> None:
        super()._begin()
        self._tracked.remove(self.elimination)
        self.elimination = self._track(self.wagers(self._counts.wins))


class OnlyProduct(WithWagers):
    wagers = Product


class OnlyMaximum(WithWagers):
    wagers = Maximum


class Variant(NamedTuple):
    """A changed policy.

    Attributes:
        what: the change.
        policy: the class.
        cash: instead of CASH, or None.
        rho: instead of RHO, or None.
    """

    what: str
    policy: type[TopTwo] = TopTwo
    cash: float | None = None
    rho: float | None = None

    @contextmanager
    def constants(self) -> Iterator[None]:
        """Change the constants of the stepped policy; kernels have their own."""
        with ExitStack() as changed:
            if self.cash is not None:
                changed.enter_context(patch.object(elimination, "CASH", self.cash))
            if self.rho is not None:
                changed.enter_context(patch.object(evidence, "RHO", self.rho))
            yield


VARIANTS: Final = (
    Variant("as it is"),
    Variant("challenger: the least proven arm, no draw", LeastProven),
    Variant("challenger: among the arms that are in only", ActiveOnly),
    Variant("leader: the largest expected score, no draw", BestLeads),
    Variant("leader: also arms that are out", AllLead),
    Variant("wager: the product only", OnlyProduct),
    Variant("wager: the maximum only", OnlyMaximum),
    *(Variant(f"cash {cash:g}", cash=cash) for cash in (0.0, 0.1, 0.5)),
    *(Variant(f"ρ = {rho:g}", rho=rho) for rho in (4.0, 16.0, 32.0)),
)

CHOSEN: Final = (
    ("Bradley-Terry, narrow", 16),
    ("random, a winner", 12),
    ("winner above a cycle", 10),
    ("cycle", 9),
)
"""The matrices, besides arXiv."""


def until_answer(policy: TopTwo, way: SteppedRun, limit: int) -> int | None:
    """Duels until the answer, looked for every twenty; None if there is none at the limit."""
    while way.t < limit:
        way.advance(min(limit, way.t + 20))
        if policy.finished or policy.elimination.against.min() >= policy.out_at:
            return way.t
    return None


def play(
    world: World, make: Callable[..., TopTwo], run: int, limit: int
) -> tuple[int | None, float]:
    """Duels to the answer and the regret until then, or until the limit."""
    arms = arrangement(world.seed, run, world.n_arms)
    seeds = run_seeds(world.seed, run, "top_two")
    grid = np.ix_(arms, arms)
    policy = make(world.n_arms, seed=seeds.policy)
    environment = MatrixEnvironment(world.preferences[grid], seed=seeds.environment)
    way = SteppedRun(policy, environment)
    answered = until_answer(policy, way, limit)
    costs = regrets(world.preferences, kind_of_regret(world))[grid]
    return answered, float((costs * way.plays).sum())


def measure(runs: int, limit: int, small: bool = False) -> dict[str, Any]:
    """All variants on some matrices."""
    chosen = [world for world in worlds(6) if world.family == "arXiv"]
    chosen += [] if small else [draw(*each, "held out") for each in CHOSEN]
    rows = []
    for variant in VARIANTS:
        cells = []
        with variant.constants():
            for world in chosen:
                played = [play(world, variant.policy, run, limit) for run in range(runs)]
                times = [limit if each is None else each for each, _ in played]
                cells.append(
                    {
                        "median": float(np.median(times)),
                        "p95": float(np.quantile(times, 0.95)),
                        "never": sum(each is None for each, _ in played),
                        "regret": float(np.mean([regret for _, regret in played])),
                        "worst": max(regret for _, regret in played),
                    }
                )
        rows.append({"what": variant.what, "cells": cells})
        tell(f"{variant.what}: {[(one['median'], round(one['regret'])) for one in cells]}")
    names = [f"{world.family}, K = {world.n_arms}" for world in chosen]
    return {"worlds": names, "runs": runs, "limit": limit, "rows": rows}
