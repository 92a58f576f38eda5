"""The measurement of one run: its regret and its champion's accuracy at each checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from streamduel import policies
from streamduel.policies import Policy
from streamduel.preference.arrays import Integers
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation import compiled
from streamduel.simulation.certainty import Answer, Judge, check_times, exceeds
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import DriftingEnvironment, Environment, MatrixEnvironment
from streamduel.simulation.run import DelayedRun, Run, SteppedRun
from streamduel.simulation.seeds import Seeds, arrangement, run_seeds
from streamduel.simulation.settings import PolicySpec, Settings, Truth

COMPILE_FROM: Final = 200_000
"""Loading numba takes as long as some 200,000 duels one by one."""


_Amount = Annotated[float, msgspec.Meta(ge=0)]


class RunResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of run number `run` of a policy.

    At each checkpoint, `regret` is cumulative and `right` is whether the champion was a winner.
    `answer` is None if it was not measured.
    """

    name: str
    params: dict[str, Any]
    run: Annotated[int, msgspec.Meta(ge=0)]
    regret: list[_Amount]
    right: list[bool]
    seconds: _Amount
    answer: Answer | None = None


def measure(settings: Settings, spec: PolicySpec, number: int) -> RunResult:
    """Play one run; the result depends on these arguments only, not on the process or other runs.

    >>> preferences = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]]
    >>> settings = Settings(preferences, [("rucb", {})], horizon=1000, runs=1, seed=7)
    >>> result = measure(settings, settings.specs[0], number=0)
    >>> round(result.regret[-1], 3), result.right[-1]
    (43.75, True)
    """
    arms = arrangement(settings.seed, number, settings.n_arms)
    seeds = run_seeds(settings.seed, number, spec.name)
    environment = _environment(settings, arms, seeds)
    policy = create_policy(spec.name, spec.params, arms, seeds.policy)
    _warm_up(settings, spec)
    began = time.perf_counter()
    run = _run(settings, policy, environment, seeds)
    account = _RegretAccount(settings.truths[0], arms)
    judge = _judge(settings, policy)
    checkpoints = set(settings.checkpoints)
    stops = checkpoints | {t for t in settings.truths if 0 < t < settings.horizon}
    regret, right, answer = [], [], None
    for t in sorted(stops.union(check_times(settings.horizon) if judge else ())):
        if answer and t not in stops:
            continue
        run.advance(t)
        if judge and answer is None:
            answer = _answer(judge, run, account, arms, settings.ties)
        if t in checkpoints:
            regret.append(account.regret(run.plays))
            right.append(arms[run.champion()] in account.truth.winners)
        if t in settings.truths and isinstance(environment, DriftingEnvironment):
            environment.move_to(t)
            account.change(run.plays, settings.truths[t])
    seconds = time.perf_counter() - began
    if judge and answer is None:
        answer = Answer(None, settings.horizon, regret[-1], wrong=False)
    return RunResult(spec.name, spec.params, number, regret, right, seconds, answer)


def create_policy(name: str, params: Mapping[str, Any], arms: Sequence[int], seed: int) -> Policy:
    """A new policy for a run, with the parameters of single arms in its arrangement.

    Args:
        name: of the policy.
        params: with the arms in the order of the matrix; unchanged.
        arms: the arrangement.
        seed: of the policy's generator.

    >>> prior = [[0, 20, 10], [0, 0, 0], [0, 0, 0]]
    >>> create_policy("top_two", {"prior": prior}, [2, 0, 1], seed=7).parameters["prior"]
    [[0.0, 0.0, 0.0], [10.0, 0.0, 20.0], [0.0, 0.0, 0.0]]
    """
    declared = policies.get(name).declared
    arranged = {key: declared[key].for_arms(value, arms) for key, value in params.items()}
    return policies.create(name, len(arms), seed=seed, **arranged)


def start_run(policy: Policy, environment: Environment, *, use_compiled: bool = True) -> Run:
    """Start a run in the fastest way available; the way changes no result.

    Args:
        policy: the policy.
        environment: the environment.
        use_compiled: whether a compiled run may be taken. It is, if numba is installed, the policy
            has a kernel and no window, and the environment is a matrix that never changes.

    >>> environment = MatrixEnvironment([[0.5, 0.7], [0.3, 0.5]], seed=7)
    >>> run = start_run(policies.create("rucb", n_arms=2, seed=7), environment, use_compiled=False)
    >>> type(run).__name__
    'SteppedRun'
    """
    is_fixed = type(environment) is MatrixEnvironment
    if use_compiled and is_fixed and policy.parameters.get("window") is None:
        compiled_run = compiled.find(policy.name)
        if compiled_run is not None:
            return compiled_run(policy, environment)
    return SteppedRun(policy, environment)


def _may_compile(settings: Settings) -> bool:
    """Whether compiled runs are allowed and save time."""
    return settings.compiled and settings.horizon * settings.runs >= COMPILE_FROM


_warm: set[str] = set()
"""The policies whose kernel is ready in this process."""


def _warm_up(settings: Settings, spec: PolicySpec) -> None:
    """Compile or load a kernel before the clock of a run starts."""
    if not _may_compile(settings) or "window" in spec.params or spec.name in _warm:
        return
    _warm.add(spec.name)
    policy = policies.create(spec.name, settings.n_arms, **spec.params)
    start_run(policy, MatrixEnvironment(settings.truths[0].preferences, seed=0)).advance(2)


class _RegretAccount:
    """Regret from counts: the duels of each pair times the regret of one of them.

    Each regret is the float64 nearest to the sum of the products: nothing is accumulated duel by
    duel, so rounding errors do not grow.
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

    def change(self, plays: Integers, truth: Truth) -> None:
        """Use another truth for the duels after these."""
        self._settled = self.regret(plays)
        self._before = plays
        self.truth = truth


def _judge(settings: Settings, policy: Policy) -> Judge | None:
    """Determines when there is an answer, if that is wanted."""
    if settings.until_sure is None:
        return None
    margin = policy.parameters.get("smallest_difference", 0.0)
    return Judge(settings.until_sure, policy.seeks, policy.n_arms, margin)


def _answer(
    judge: Judge, run: Run, account: _RegretAccount, arms: list[int], ties: float
) -> Answer | None:
    """The answer, if there is one now, judged by the present truth."""
    verdict = judge.verdict(run)
    if verdict is None:
        return None
    has_condorcet_winner = condorcet_winner(account.truth.preferences) is not None
    if verdict == "none":
        wrong = has_condorcet_winner
    elif verdict == "unbeaten":
        champion = arms[run.champion()]
        wrong = exceeds(account.truth.preferences, champion, judge.margin, ties)
    else:
        is_winner = arms[run.champion()] in account.truth.winners
        wrong = not is_winner or (judge.seeks == "condorcet" and not has_condorcet_winner)
    return Answer(verdict, run.t, account.regret(run.plays), wrong)


def _environment(settings: Settings, arms: list[int], seeds: Seeds) -> MatrixEnvironment:
    """The environment of a run, with the arms in its arrangement."""
    cells = np.ix_(arms, arms)
    first, *later = [(t, truth.preferences[cells]) for t, truth in settings.truths.items()]
    options: dict[str, Any] = {"ties": settings.ties, "seed": seeds.environment}
    if later:
        return DriftingEnvironment(first[1], dict(later), **options)
    return MatrixEnvironment(first[1], **options)


def _run(settings: Settings, policy: Policy, environment: MatrixEnvironment, seeds: Seeds) -> Run:
    """The run with the delay and the slate of the settings."""
    if settings.delay is None and settings.slate == 1:
        return start_run(policy, environment, use_compiled=_may_compile(settings))
    return DelayedRun(
        policy, environment, settings.delay or FixedDelay(0), slate=settings.slate, seed=seeds.delay
    )
