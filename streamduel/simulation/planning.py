"""How long an experiment will take: duels until an answer, by simulation, within bounded time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from streamduel import policies
from streamduel.errors import ConfigurationError, nearest
from streamduel.policies import Policy
from streamduel.preference.arrays import Floats
from streamduel.simulation import compiled, matrices
from streamduel.simulation.ab_test import ABTest, ab_test
from streamduel.simulation.certainty import Judge, Verdict, exceeds
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import COMPILE_FROM, create_policy, start_run
from streamduel.simulation.seeds import arrangement, run_seeds

Others: Final = Literal["equal", "bradley-terry"]
NoClick: Final = Literal["drop", "tie"]

MAX_ARMS: Final = 200
"""With more, one check of the evidence of all pairs takes milliseconds."""
MAX_RUNS: Final = 10_000
MAX_HORIZON: Final = 1_000_000_000
LEAST: Final = 1e-6
"""Of difference and click share, and of how far shared clicks are below 1. If all three are this
small, the click rates of the A/B test still differ by ten thousand rounding errors."""
A_DAY: Final = (0.001, 1e12)
"""Impressions a day: one in three years, and more than the users of any site can see."""
RUNS: Final = 100
"""At most, unless more are asked for: the 90 % is within some 10 % of the truth."""

_WORK: Final = 15e6
"""Microseconds that all runs of a policy should take, by the costs below: estimates, not a clock,
so that equal seeds give equal plans."""
_LEAST_RUNS: Final = 5
"""A run may take this part of the work, so that at least so many have an end."""
_FIRST_CHECK: Final = 10
_CHECK_AGAIN: Final = 50
"""After n duels the next check follows n/50 duels later, so answers come up to 2 % late."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a plan is asked.

    Args:
        arms: K.
        difference: D: the best arm wins 1/2 + D of its duels with each other one.
        impressions_per_day: of the experiment.
        click_share: S, the share of impressions whose clicks prefer one arm.
        confidence: of the answer.
        others: how the other arms compare: all equal, which is a hard case, or Bradley-Terry,
            in which each arm beats the next one as the best beats the second.
        no_click: what the other impressions are, as in the configuration: no duel, or a tie.
        seed: equal seeds give equal plans.
        runs: of each policy; None for as many as a time of some seconds allows, at most `RUNS`.
        horizon: duels after which a run counts as never; None for what that time allows.
        shared: see `ab_test`.

    Raises:
        ConfigurationError: a number is out of range.
    """

    arms: int
    difference: float
    impressions_per_day: float
    click_share: float = 1.0
    confidence: float = 0.95
    others: str = "equal"
    no_click: str = "drop"
    seed: int = 0
    runs: int | None = None
    horizon: int | None = None
    shared: float = 0.0

    def __post_init__(self) -> None:
        _check("arms", self.arms, 2 <= self.arms <= MAX_ARMS, f"from 2 to {MAX_ARMS}")
        strict = self.others == "bradley-terry"
        _check(
            "difference",
            self.difference,
            LEAST <= self.difference < 0.5 or (self.difference == 0.5 and not strict),
            f"from {LEAST:f} to {'below ' if strict else ''}0.5; 0.05 means that the best ranker "
            "wins 55 % of its duels with each other one",
        )
        _check(
            "impressions-per-day",
            self.impressions_per_day,
            A_DAY[0] <= self.impressions_per_day <= A_DAY[1],
            f"from {A_DAY[0]} to {A_DAY[1]:.0f}",
        )
        _check(
            "click-share",
            self.click_share,
            LEAST <= self.click_share <= 1,
            f"from {LEAST:f} to 1; 0.3 means that 30 % of the impressions prefer a ranker",
        )
        _check(
            "confidence",
            self.confidence,
            0.5 <= self.confidence <= 0.999999,
            "from 0.5 to 0.999999",
        )
        _check(
            "shared-clicks", self.shared, 0 <= self.shared <= 1 - LEAST, f"from 0 to {1 - LEAST:f}"
        )
        _check("seed", self.seed, self.seed >= 0, "an integer from 0")
        for what, value, most in (
            ("runs", self.runs, MAX_RUNS),
            ("horizon", self.horizon, MAX_HORIZON),
        ):
            _check(what, value, value is None or 1 <= value <= most, f"from 1 to {most}")
        _check_choice("others", self.others, get_args(Others))
        _check_choice("no-click", self.no_click, get_args(NoClick))

    @property
    def preferences(self) -> Floats:
        """(K, K), the best arm first."""
        if self.others == "bradley-terry":
            step = math.log((0.5 + self.difference) / (0.5 - self.difference))
            # Beyond 50 an arm wins always, and exp would overflow far beyond.
            return matrices.bradley_terry([-min(step * arm, 50.0) for arm in range(self.arms)])
        p = np.full((self.arms, self.arms), 0.5)
        p[0, 1:] += self.difference
        p[1:, 0] -= self.difference
        return p

    @property
    def ties(self) -> float:
        """The share of duels that are ties."""
        return 1 - self.click_share if self.no_click == "tie" else 0.0

    @property
    def impressions_per_duel(self) -> float:
        """How many impressions it takes, on average, to make a duel of two arms."""
        return 1.0 if self.no_click == "tie" else 1 / self.click_share


class Ending(NamedTuple):
    """How a run ended.

    Attributes:
        verdict: None for none.
        duels: until then, those of an arm with itself included.
        wrong: whether the verdict is.
        alone: how many of the duels were of an arm with itself.
    """

    verdict: Verdict | None
    duels: int
    wrong: bool
    alone: int = 0


@dataclass(frozen=True)
class Duration:
    """How long a policy takes: the endings of its runs.

    Attributes:
        name: the policy's.
        params: all its parameters.
        horizon: duels after which a run counted as never.
        endings: of all runs.
    """

    name: str
    params: dict[str, Any]
    horizon: int
    endings: tuple[Ending, ...]

    @property
    def never(self) -> int:
        """The number of runs without an answer up to the horizon."""
        return sum(ending.verdict is None for ending in self.endings)

    @property
    def wrong(self) -> int:
        """The number of runs with a wrong answer."""
        return sum(ending.wrong for ending in self.endings)

    def duels(self, share: float) -> int | None:
        """Duels after which this share of the runs had an answer; None if fewer ever had one."""
        return self.quantile(share, lambda ending: ending.duels)

    def quantile(self, share: float, time: Callable[[Ending], int]) -> int | None:
        """The time at which this share of the runs had an answer; None if fewer ever had one.

        Args:
            share: of the runs, above 0.
            time: of an ending.
        """
        times = sorted(time(ending) for ending in self.endings if ending.verdict)
        place = math.ceil(share * len(self.endings)) - 1
        return times[place] if place < len(times) else None


@dataclass(frozen=True)
class Plan:
    """The answer to a question: how long the policy takes, and how long the alternatives."""

    question: Question
    durations: tuple[Duration, ...]
    ab_test: ABTest

    def days(self, impressions: float) -> float:
        """Days of traffic."""
        return impressions / self.question.impressions_per_day

    def impressions(self, duration: Duration, share: float) -> int | None:
        """Impressions after which this share of the runs had an answer; None if fewer ever had."""
        return duration.quantile(share, self.impressions_of)

    def least_impressions(self, duration: Duration, share: float) -> int:
        """As `impressions`, but each run without an answer has one at its end: a lower bound."""
        times = sorted(map(self.impressions_of, duration.endings))
        return times[math.ceil(share * len(times)) - 1]

    def impressions_of(self, ending: Ending) -> int:
        """Impressions of a run: one of an arm alone is a duel whether it is clicked or not."""
        fought = ending.duels - ending.alone
        return math.ceil(fought * self.question.impressions_per_duel) + ending.alone


def make_plan(
    question: Question,
    policy: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Simulate the policy and, to compare, uniform choice of the pairs with the same evidence.

    Args:
        question: what is asked.
        policy: a policy's name.
        parameters: those of the policy that do not follow from the question.
        progress: called with the work done and all work, in arbitrary units.

    Raises:
        PolicyError: the policy is unknown or needs parameters.

    >>> question = Question(arms=2, difference=0.1, impressions_per_day=100.0, runs=9)
    >>> plan = make_plan(question, "top_two")
    >>> plan.impressions(plan.durations[0], 0.5), plan.ab_test.impressions
    (177, 194)
    """
    names = [policy] if policy == "uniform" else [policy, "uniform"]
    seeks, given = policies.get(policy).seeks, parameters or {}
    margin = given.get("smallest_difference", 0.0)
    judge = Judge(question.confidence, seeks, question.arms, margin)
    durations = []
    for place, name in enumerate(names):

        def report(done: float, place: int = place) -> None:
            if progress:
                progress(round(1000 * (place + done)), 1000 * len(names))

        own = given if name == policy else {}
        durations.append(_simulate(question, name, own, judge, report))
    it = question
    test = ab_test(it.arms, it.difference, it.click_share, it.confidence, it.shared)
    return Plan(question, tuple(durations), test)


def _simulate(
    question: Question,
    name: str,
    given: Mapping[str, Any],
    judge: Judge,
    report: Callable[[float], None],
) -> Duration:
    """The endings of one policy's runs; the report is told the share of the work done."""
    compile_ = _expected(question) >= COMPILE_FROM and compiled.find(name) is not None
    of_duel, of_check = _costs(question.arms, name, compile_)
    horizon = question.horizon or max(1, int(_WORK / _LEAST_RUNS / of_duel))
    runs = question.runs or RUNS
    params = _parameters(question, name, given, horizon)
    endings: list[Ending] = []
    done = 0.0
    while len(endings) < runs and (question.runs or done < _WORK or len(endings) < _LEAST_RUNS):
        report(max(len(endings) / runs, 0.0 if question.runs else min(1.0, done / _WORK)))
        number = len(endings)
        seeds = run_seeds(question.seed, number, name)
        arms = arrangement(question.seed, number, question.arms)
        preferences = question.preferences[np.ix_(arms, arms)]
        environment = MatrixEnvironment(preferences, ties=question.ties, seed=seeds.environment)
        policy = create_policy(name, params, arms, seeds.policy)
        ending = _ending(question, policy, environment, judge, horizon, arms, compile_)
        endings.append(ending)
        done += of_duel * ending.duels + of_check * _CHECK_AGAIN * math.log(ending.duels + 1)
    report(1.0)
    return Duration(name, params, horizon, tuple(endings))


def _ending(
    question: Question,
    policy: Policy,
    environment: MatrixEnvironment,
    judge: Judge,
    horizon: int,
    arms: list[int],
    compile_: bool,
) -> Ending:
    """Play one run until it has an answer."""
    run = start_run(policy, environment, use_compiled=compile_)
    t = min(_FIRST_CHECK, horizon)
    while True:
        run.advance(t)
        verdict = judge.verdict(run)
        if verdict is not None:
            champion = arms[run.champion()]
            if verdict == "unbeaten":
                wrong = exceeds(question.preferences, champion, judge.margin, question.ties)
            else:
                wrong = verdict == "none" or champion != 0
            return Ending(verdict, t, wrong, int(run.plays.trace()))
        if t == horizon:
            return Ending(None, t, wrong=False, alone=int(run.plays.trace()))
        t = min(horizon, t + max(1, t // _CHECK_AGAIN))


def _parameters(
    question: Question, name: str, given: Mapping[str, Any], horizon: int
) -> dict[str, Any]:
    """All parameters of a policy: it must know until when to explore."""
    kind = policies.get(name)
    asked = {"confidence": question.confidence, "horizon": horizon}
    known = {key: value for key, value in asked.items() if key in kind.declared}
    return kind.check_parameters({**known, **given}, question.arms)


def _costs(n_arms: int, name: str, compile_: bool) -> tuple[float, float]:
    """About how many microseconds a duel takes, and a check of the evidence of all pairs."""
    check = 100 + 0.03 * n_arms**2
    if name == "uniform":
        return 0.3, check
    return 0.2 * n_arms if compile_ else 20.0 + n_arms, check


def _expected(question: Question) -> float:
    """About how many duels all runs of a good policy take: 1.8 per arm and 1/D²."""
    lead = question.difference * (1 - question.ties)
    return (question.runs or RUNS) * 1.8 * question.arms / lead**2


def _check(what: str, value: object, is_fine: bool, allowed: str) -> None:
    """Refuse a value out of range."""
    if not is_fine:
        raise ConfigurationError(f"--{what} must be {allowed} (found {value}).")


def _check_choice(what: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is none of the allowed ones."""
    if value not in allowed:
        raise ConfigurationError(
            f"--{what} must be {' or '.join(allowed)} (found '{value}'{nearest(value, allowed)})."
        )
