"""One run of one policy: what it cost, and whether its champion was right, at each checkpoint."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from streamduel import policies
from streamduel.policies import Policy
from streamduel.preference.arrays import Integers
from streamduel.simulation.course import Course, course
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.delayed_course import DelayedCourse
from streamduel.simulation.drift import DriftingEnvironment
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.seeds import Seeds, arrangement, run_seeds
from streamduel.simulation.settings import Contestant, Settings, Truth


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run.

    Attributes:
        name: the policy's.
        params: all its parameters.
        run: its number, from 0.
        regret: cumulative, at each checkpoint.
        right: whether the champion was a winner, at each checkpoint.
        seconds: how long it took.
    """

    name: str
    params: dict[str, Any]
    run: int
    regret: list[float]
    right: list[bool]
    seconds: float


def play(settings: Settings, contestant: Contestant, run: int) -> Run:
    """One run; equal settings give equal results, whatever else is simulated, and wherever.

    Args:
        settings: what is simulated.
        contestant: the policy.
        run: its number, from 0.

    >>> preferences = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]]
    >>> settings = Settings(preferences, [("rucb", {})], horizon=1000, runs=1, seed=7)
    >>> result = play(settings, settings.contestants[0], run=0)
    >>> round(result.regret[-1], 3), result.right[-1]
    (43.75, True)
    """
    arms = arrangement(settings.seed, run, settings.n_arms)
    seeds = run_seeds(settings.seed, run, contestant.name)
    environment = _environment(settings, arms, seeds)
    policy = policies.create(
        contestant.name, settings.n_arms, seed=seeds.policy, **contestant.params
    )
    _warm_up(settings, contestant)
    began = time.perf_counter()
    way = _course(settings, policy, environment, seeds)
    ledger = _Ledger(settings.truths[0], arms)
    looks = set(settings.checkpoints)
    regret, right = [], []
    for t in sorted(looks | {t for t in settings.truths if 0 < t < settings.horizon}):
        way.advance(t)
        if t in looks:
            regret.append(ledger.regret(way.plays))
            right.append(arms[way.champion()] in ledger.truth.winners)
        if t in settings.truths and isinstance(environment, DriftingEnvironment):
            environment.move_to(t)
            ledger.turn(way.plays, settings.truths[t])
    seconds = time.perf_counter() - began
    return Run(contestant.name, contestant.params, run, regret, right, seconds)


_WORTH_COMPILING: Final = 200_000
"""To load the compiler takes as long as some 200,000 duels one by one."""


def _may_compile(settings: Settings) -> bool:
    """Whether to look for compiled courses: wherever they are allowed and pay."""
    return settings.compiled and settings.horizon * settings.runs >= _WORTH_COMPILING


_warm: set[str] = set()
"""The policies whose compiled course is ready in this process."""


def _warm_up(settings: Settings, contestant: Contestant) -> None:
    """Let a course be compiled before the time of a run is taken."""
    if not _may_compile(settings) or "window" in contestant.params or contestant.name in _warm:
        return
    _warm.add(contestant.name)
    policy = policies.create(contestant.name, settings.n_arms, **contestant.params)
    course(policy, MatrixEnvironment(settings.truths[0].preferences, seed=0)).advance(2)


class _Ledger:
    """Regret from counts: so many duels of a pair times what one of them costs.

    Nothing is added up along the way, so there is no drift: each regret is the float64 nearest to
    the sum of the products.

    Args:
        truth: at the beginning.
        arms: the arrangement of the run.
    """

    def __init__(self, truth: Truth, arms: list[int]) -> None:
        self.truth = truth
        self._cells = np.ix_(arms, arms)
        self._before: Integers = np.zeros((len(arms),) * 2, dtype=np.int64)
        self._settled = 0.0

    def regret(self, plays: Integers) -> float:
        """Cumulative regret after these duels, in the arrangement of the run."""
        since = plays - self._before
        played = since.nonzero()
        costs = self.truth.regrets[self._cells][played] * since[played]
        return math.fsum([self._settled, *costs.tolist()])

    def turn(self, plays: Integers, truth: Truth) -> None:
        """From now on another truth holds."""
        self._settled = self.regret(plays)
        self._before = plays
        self.truth = truth


def _environment(settings: Settings, arms: list[int], seeds: Seeds) -> MatrixEnvironment:
    """The users of a run, with the arms in its arrangement."""
    cells = np.ix_(arms, arms)
    first, *later = [(t, truth.preferences[cells]) for t, truth in settings.truths.items()]
    if later:
        return DriftingEnvironment(
            first[1], dict(later), ties=settings.ties, seed=seeds.environment
        )
    return MatrixEnvironment(first[1], ties=settings.ties, seed=seeds.environment)


def _course(
    settings: Settings, policy: Policy, environment: MatrixEnvironment, seeds: Seeds
) -> Course:
    """The policy's way through it."""
    if settings.delay is None and settings.slate == 1:
        return course(policy, environment, compiled=_may_compile(settings))
    return DelayedCourse(
        policy, environment, settings.delay or FixedDelay(0), slate=settings.slate, seed=seeds.delay
    )
