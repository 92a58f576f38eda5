"""Single runs: regret and champion at some times, and when a run has answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.research.worlds import World
from streamduel import policies
from streamduel.policies import Policy
from streamduel.preference.regret import regrets
from streamduel.simulation import compiled
from streamduel.simulation.compiled.top_two import TopTwoRun
from streamduel.simulation.environment import Environment, MatrixEnvironment
from streamduel.simulation.run import Run, SteppedRun
from streamduel.simulation.seeds import arrangement, run_seeds

FINENESS: Final = 64
"""An answer is looked for whenever the duels have grown by this part."""


class Played(NamedTuple):
    """A run.

    Attributes:
        regret: at each of the times.
        right: at each of the times, whether the champion is a winner.
        alone: duels until at most one arm is in, or the answer; None if never.
        answered: duels until the answer, None if never.
        wrong: whether the answer is wrong.
    """

    regret: list[float]
    right: list[bool]
    alone: int | None = None
    answered: int | None = None
    wrong: bool = False


class AnswerRun(TopTwoRun):
    """A compiled run that can be asked for its answer, without a copy of the policy."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        self._diagonal = np.diag(np.full(policy.n_arms, np.inf))

    def answer(self) -> tuple[int, int | None]:
        """How many arms are in, and the arm that surely beats all others."""
        wagers, _, rules = self._parts
        n_active = int(np.count_nonzero(wagers.against < rules.out_at))
        least = (wagers.safe + self._diagonal).min(axis=1)
        arm = int(least.argmax())
        return n_active, arm if least[arm] >= rules.sure_at else None


def kind_of_regret(world: World) -> str:
    """Copeland regret where there is no Condorcet winner."""
    return "copeland" if world.winner is None else "condorcet"


def start(world: World, name: str, params: Mapping[str, Any], run: int, ties: float = 0.0) -> Run:
    """A run with the seeds of this number; the arms are in random order."""
    arms = arrangement(world.seed, run, world.n_arms)
    seeds = run_seeds(world.seed, run, name)
    environment = MatrixEnvironment(
        world.preferences[np.ix_(arms, arms)], ties=ties, seed=seeds.environment
    )
    policy = policies.create(name, world.n_arms, seed=seeds.policy, **params)
    if name == "top_two":
        return AnswerRun(policy, environment)
    return (compiled.find(name) or SteppedRun)(policy, environment)


def play(
    world: World,
    name: str,
    params: Mapping[str, Any],
    run: int,
    times: tuple[int, ...],
    patience: int = 0,
    ties: float = 0.0,
) -> Played:
    """A whole run.

    Args:
        world: the preferences.
        name: of the policy.
        params: of the policy.
        run: its number.
        times: duels after which regret and champion are noted, ascending.
        patience: duels after which an answer is no longer waited for; 0 to look for none.
        ties: the probability of a tie.
    """
    arms = arrangement(world.seed, run, world.n_arms)
    costs = regrets(world.preferences, kind_of_regret(world))[np.ix_(arms, arms)]
    way = start(world, name, params, run, ties)
    answers = isinstance(way, AnswerRun) and patience > 0
    alone = answered = None
    wrong, regret, right = False, [], []
    for t in (*times, patience):
        while answers and answered is None and way.t < t:
            way.advance(min(t, way.t + 1 + way.t // FINENESS))
            n_active, champion = way.answer()  # type: ignore[attr-defined]
            if champion is not None:
                answered, wrong = way.t, arms[champion] != world.winner
            elif n_active == 0:
                answered, wrong = way.t, world.winner is not None
            if alone is None and (n_active <= 1 or answered is not None):
                alone = way.t
        if t in times:
            way.advance(t)
            regret.append(float((costs * way.plays).sum()))
            right.append(arms[way.champion()] in world.winners)
    return Played(regret, right, alone, answered, wrong)
