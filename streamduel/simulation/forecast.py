"""When an experiment will have an answer: simulations that begin at its present counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel import policies
from streamduel.policies import Policy
from streamduel.policies.base.duels import Duels
from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import Winner
from streamduel.simulation.certainty import Judge
from streamduel.simulation.environment import Environment, MatrixEnvironment
from streamduel.simulation.posterior import SPREADS, Logits
from streamduel.simulation.run import Run

RUNS: Final = 25
"""Simulations: the 10 % and 90 % of their ends are the third and the third to last."""

HORIZON: Final = 20
"""An end after more than so many times the present duels is no end in sight."""
LEAST_HORIZON: Final = 20_000
"""The shortest horizon, in duels."""

_BLOCKS: Final = 100
"""After n duels of two arms, the next pair plays n/100 duels in a row: simulated in bulk, they take
a hundredth of the time, and the policy hears of them as late as of delayed clicks."""
_MOST_BLOCKS: Final = 2_000
"""Of a simulation: enough for the horizon, unless the policy draws for each duel whether an arm is
served alone, and mostly is."""
_CHECK_AGAIN: Final = 2
"""Blocks between two checks of the evidence."""


@dataclass(frozen=True, eq=False)
class Situation:
    """An experiment at present.

    Attributes:
        policy: the policy's name.
        parameters: its parameters.
        wins: (K, K), [i, j] is how often i has beaten j, a tie being half a win each way.
        ties: (K, K), symmetric: the ties of each pair that `wins` contains.
        seeks: which winner is sought.
        confidence: with which the answer is wanted.
        tie_share: the share of ties among the duels to come; None: as among those so far.
        alone: duels of an arm with itself so far, which advance the time of the policy.
    """

    policy: str
    parameters: Mapping[str, Any]
    wins: Floats
    ties: Floats
    seeks: Winner
    confidence: float
    tie_share: float | None = None
    alone: int = 0

    @property
    def duels(self) -> int:
        """All duels so far, as the policy counts them."""
        return int(self.wins.sum()) + self.alone


class Forecast(NamedTuple):
    """Duels until an answer, from the beginning of the experiment, in some simulations.

    Attributes:
        began_at: the duels from which they began.
        low: in one of ten simulations, there was an answer by then; None for the three numbers if
            that is after the horizon.
        median: in half of them.
        high: in nine of ten.
        never: the share of simulations without an answer up to the horizon.
        horizon: in duels.
        alone: whether the policy wants arms to duel with themselves; then the duels contain these.
    """

    began_at: int
    low: int | None
    median: int | None
    high: int | None
    never: float
    horizon: int
    alone: bool = False


def forecast(situation: Situation, seed: int, runs: int = RUNS) -> Generator[None, None, Forecast]:
    """Simulate, in small steps between which the caller may pause.

    Each simulation draws the preferences from what the duels leave possible, and continues the
    policy with the present counts. Duels of an arm with itself are not simulated beyond those that
    the policy wants.

    Args:
        situation: the experiment at present.
        seed: equal seeds give equal forecasts.
        runs: the number of simulations.

    Yields:
        None, after some 100 µs of work.

    Returns:
        The forecast.

    Raises:
        PolicyError: the policy does not allow these parameters.

    >>> wins = np.array([[0.0, 330.0], [270.0, 0.0]])
    >>> ties = np.zeros((2, 2))
    >>> ahead = forecast(Situation("top_two", {}, wins, ties, "condorcet", 0.95), seed=7)
    >>> try:
    ...     while True:
    ...         next(ahead)
    ... except StopIteration as ended:
    ...     ended.value[:4]
    (600, 672, 840, 2710)
    """
    rng = np.random.default_rng(seed)
    horizon = max(HORIZON * situation.duels, LEAST_HORIZON)
    margin = situation.parameters.get("smallest_difference", 0.0)
    judge = Judge(situation.confidence, situation.seeks, len(situation.wins), margin)
    logits, fits = Logits.of(np.maximum(situation.wins - situation.ties / 2, 0)), []
    for spread, deviation in itertools.product(SPREADS, SPREADS):
        fits.append(logits.fit(spread, deviation))
        yield
    ends: list[float] = []
    alone = False
    for _ in range(runs):
        run = BlockRun(
            _policy(situation, rng), _environment(situation, logits.draw(fits, rng)), rng
        )
        end = math.inf
        while run.duels < horizon and run.t < _MOST_BLOCKS:
            run.advance(run.t + 1)
            yield
            if run.t % _CHECK_AGAIN == 0 and judge.verdict(run) is not None:
                end = run.duels
                break
        alone = alone or run.alone
        ends.append(end)
        if sum(map(math.isinf, ends)) > runs / 2:  # no end in sight, whatever the others do
            break
    low, median, high = (_quantile(ends, share) for share in (0.1, 0.5, 0.9))
    never = sum(map(math.isinf, ends)) / len(ends)
    return Forecast(situation.duels, low, median, high, never, horizon, alone)


class BlockRun(Run):
    """A run in which each pair that the policy chooses plays some duels in a row.

    Args:
        policy: may have observed duels.
        environment: a matrix that does not change.
        rng: of the outcomes.

    Attributes:
        t: blocks so far.
        alone: whether the policy had an arm duel with itself before it finished.
    """

    _environment: MatrixEnvironment

    def __init__(self, policy: Policy, environment: Environment, rng: np.random.Generator) -> None:
        super().__init__(policy, environment)
        self._rng = rng
        self.alone = False

    @property
    def duels(self) -> int:
        """The policy's duels, those before this run included."""
        return self._policy.duels

    @override
    def advance(self, until: int) -> None:
        """Simulate blocks until there have been so many."""
        while self.t < until:
            self.t += 1
            count = max(1, int(self.wins.sum()) // _BLOCKS)
            first, second = self._policy.propose(1)[0].tolist()
            if first == second:
                self.alone = self.alone or not self._policy.finished
                self._serve_alone(first, count)
                continue
            self._plays[first, second] += count
            ties = int(self._rng.binomial(count, self._environment.ties))
            won = int(
                self._rng.binomial(count - ties, self._environment.preferences[first, second])
            )
            for outcome, times in ((1.0, won), (0.0, count - ties - won), (0.5, ties)):
                if times:
                    self._policy.observe(first, second, outcome, times)

    def _serve_alone(self, arm: int, count: int) -> None:
        """Simulate at least so many duels of an arm with itself, more if they surely follow."""
        _, certain = self._policy.propose_ahead(max(1, self.duels // _BLOCKS))
        count = max(count, certain.item(0))
        self._plays[arm, arm] += count
        self._policy.observe(arm, arm, 0.5, count)


def _policy(situation: Situation, rng: np.random.Generator) -> Policy:
    """The policy, which has observed the present counts."""
    n_arms = len(situation.wins)
    policy = policies.create(
        situation.policy, n_arms, seed=int(rng.integers(2**63)), **situation.parameters
    )
    if situation.alone:  # first: those of two arms are then in a window
        policy.observe(0, 0, 0.5, situation.alone)
    won = np.floor(np.maximum(situation.wins - situation.ties / 2, 0)).astype(np.int64)
    first, second = won.nonzero()
    policy.learn(Duels(first, second, np.ones(len(first)), won[first, second]))
    tied = np.triu(situation.ties).astype(np.int64)
    first, second = tied.nonzero()
    policy.learn(Duels(first, second, np.full(len(first), 0.5), tied[first, second]))
    return policy


def _environment(situation: Situation, preferences: Floats) -> MatrixEnvironment:
    """Preferences with the ties that are to be expected."""
    share = situation.tie_share
    if share is None:
        share = float(situation.ties.sum() / 2 / max(1.0, situation.wins.sum()))
    return MatrixEnvironment(preferences, ties=min(share, 0.99), seed=0)


def _quantile(ends: list[float], share: float) -> int | None:
    """The end by which this share of the runs had an answer; None if that is never."""
    end = sorted(ends)[max(0, math.ceil(share * len(ends)) - 1)]
    return None if math.isinf(end) else int(end)
