"""Duels until an answer: found by the definition, judged by the truth, and free of side effects."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import ConfigurationError
from streamduel.preference.arrays import Floats
from streamduel.preference.elimination import Elimination, condorcet_winner_possible
from streamduel.preference.evidence import Winner, confidence, log_evidence, unbeaten
from streamduel.simulation.certainty import Answer, Judge, Verdict, check_times, most_evidence
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import cyclic
from streamduel.simulation.measurement import _answer, _RegretAccount, measure
from streamduel.simulation.run import Run, SteppedRun
from streamduel.simulation.seeds import arrangement, run_seeds
from streamduel.simulation.settings import Settings

ORDER: Floats = np.array([[0.5, 0.8, 0.9], [0.2, 0.5, 0.8], [0.1, 0.2, 0.5]])
CYCLE: Floats = cyclic(3, 0.3)
NEAR: Floats = np.array([[0.5, 0.51, 0.8], [0.49, 0.5, 0.8], [0.2, 0.2, 0.5]])


class Standing(Run):
    """A run with these counts and this champion."""

    plays = np.zeros((3, 3), dtype=np.int64)
    t = 7

    def __init__(self, wins: Floats, champion: int) -> None:
        self._wins, self._first = wins, champion

    @property
    def wins(self) -> Floats:
        return self._wins

    def champion(self) -> int:
        return self._first

    def advance(self, until: int) -> None:
        raise NotImplementedError  # asked about a run where it is


def settings(preferences: Floats, policy: str = "top_two", **changes: Any) -> Settings:
    given = {"horizon": 1500, "runs": 3, "seed": 7, "until_sure": 0.95, "regret": "copeland"}
    return Settings(preferences, [(policy, {})], **{**given, **changes})


def answers(asked: Settings) -> list[Answer]:
    found = [measure(asked, asked.specs[0], run).answer for run in range(asked.runs)]
    assert all(found)
    return [answer for answer in found if answer]


def by_definition(
    wins: Floats, champion: int, seeks: Winner, level: float, margin: float = 0.0
) -> Verdict | None:
    if confidence(wins, champion, seeks) >= level:
        return "champion"
    if seeks == "condorcet" and not condorcet_winner_possible(wins, 1 - level):
        return "none"
    if margin and unbeaten(wins, champion, margin) >= level:
        return "unbeaten"
    return None


def random_counts(dice: np.random.RandomState) -> Floats:
    """Counts of a matrix that may have a clear winner, a cycle, or too few duels to tell."""
    n_arms = dice.randint(2, 7)
    strength = dice.choice([0.05, 0.4]) * dice.standard_normal((n_arms, n_arms))
    chances = 1 / (1 + np.exp(-(strength - strength.T)))
    duels = dice.poisson(dice.choice([2, 40, 400]), size=(n_arms, n_arms))
    duels = np.triu(duels, 1) + np.triu(duels, 1).T
    upper = np.triu(dice.binomial(duels, chances), 1).astype(np.float64)
    wins: Floats = upper + np.tril(duels - upper.T, -1)
    return wins


def test_checks_are_at_most_one_per_cent_apart() -> None:
    times = check_times(12_345)
    assert times[0] == 1
    assert times[-1] == 12_345
    steps = np.diff(times)
    assert (steps > 0).all()
    assert (steps <= np.maximum(1, np.array(times[:-1]) / 100)).all()
    assert check_times(1) == [1]


def test_fast_bounds_are_bounds() -> None:
    dice = np.random.RandomState(1)
    for _ in range(200):
        wins = random_counts(dice)
        most = most_evidence(wins)
        assert (most >= log_evidence(wins) - 1e-9).all()
        assert (most.sum(axis=0) >= Elimination(wins).against - 1e-9).all()


def test_verdict_is_that_of_the_definition() -> None:
    dice, seen = np.random.RandomState(2), set()
    for _ in range(400):
        wins = random_counts(dice)
        for seeks in ("condorcet", "copeland"):
            for champion, margin in product(range(len(wins)), (0.0, 0.1)):
                judge = Judge(0.9, seeks, len(wins), margin)
                expected = by_definition(wins, champion, seeks, 0.9, margin)
                assert judge.verdict(Standing(wins, champion)) == expected
                seen.add((seeks, expected))
    assert len(seen) == 7


@pytest.mark.parametrize("name", ["top_two", "uniform"])
@pytest.mark.parametrize("preferences", [ORDER, CYCLE], ids=["order", "cycle"])
def test_an_answer_comes_at_the_first_check_that_finds_one(name: str, preferences: Floats) -> None:
    asked = settings(preferences, name, ties=0.1)
    seeks = policies.get(name).seeks
    arms, seeds = arrangement(7, 2, 3), run_seeds(7, 2, name)
    policy = policies.create(name, 3, seed=seeds.policy)
    environment = MatrixEnvironment(
        preferences[np.ix_(arms, arms)], ties=0.1, seed=seeds.environment
    )
    run, verdict = SteppedRun(policy, environment), None
    for t in check_times(1500):
        run.advance(t)
        verdict = by_definition(run.wins, run.champion(), seeks, 0.95)
        if verdict is not None:
            break
    costs = asked.truths[0].regrets[np.ix_(arms, arms)]
    answer = measure(asked, asked.specs[0], 2).answer
    assert answer is not None
    assert (answer.verdict, answer.duels, answer.wrong) == (verdict, run.t, False)
    assert answer.regret == pytest.approx((costs * run.plays).sum())
    assert verdict is not None


def test_measuring_an_answer_changes_nothing_else() -> None:
    plain, asked = settings(ORDER, until_sure=None), settings(ORDER)
    one, other = (measure(each, each.specs[0], 0) for each in (plain, asked))
    assert one.answer is None
    assert other.answer
    assert (one.regret, one.right) == (other.regret, other.right)


@pytest.mark.parametrize("name", ["top_two", "ccb"])
def test_compiled_or_not_is_the_same(name: str) -> None:
    found = []
    for compiled in (True, False):
        asked = settings(ORDER, name, runs=150, compiled=compiled)  # enough to be compiled
        found.append(measure(asked, asked.specs[0], 0).answer)
    assert found[0] == found[1]


def test_a_run_without_an_answer_counts_with_the_horizon() -> None:
    asked = settings(ORDER, horizon=20)
    run = measure(asked, asked.specs[0], 0)
    assert run.answer == Answer(None, 20, run.regret[-1], wrong=False)


@pytest.mark.parametrize(
    ("truth", "claimed", "policy", "verdict", "wrong"),
    [
        (ORDER, ORDER, "top_two", "champion", False),
        (1 - ORDER, ORDER, "top_two", "champion", True),
        (1 - ORDER, ORDER, "ccb", "champion", True),
        (CYCLE, CYCLE, "top_two", "none", False),
        (ORDER, CYCLE, "top_two", "none", True),
        (CYCLE, CYCLE, "ccb", "champion", False),  # each arm is a Copeland winner
        (CYCLE, ORDER, "ccb", "champion", False),
        (CYCLE, ORDER, "top_two", "champion", True),  # no arm is a Condorcet winner
    ],
)
def test_an_answer_is_judged_by_the_truth(
    truth: Floats, claimed: Floats, policy: str, verdict: Verdict, wrong: bool
) -> None:
    judge = Judge(level=0.95, seeks=policies.get(policy).seeks, n_arms=3)
    account = _RegretAccount(settings(truth).truths[0], [0, 1, 2])
    answer = _answer(judge, Standing(np.round(300 * claimed), 0), account, [0, 1, 2], 0)
    assert answer == Answer(verdict, 7, 0.0, wrong)


@pytest.mark.parametrize(
    ("margin", "ties", "wrong"),
    [(0.2, 0, False), (0.04, 0, False), (0.01, 0, True), (0.01, 0.7, True), (0.01, 0.8, False)],
)
def test_a_difference_that_does_not_matter_is_judged_by_the_truth(
    margin: float, ties: float, wrong: bool
) -> None:
    """The margin is one of win rates, with a tie as half a win."""
    truth = np.array([[0.5, 0.46, 0.8], [0.54, 0.5, 0.8], [0.2, 0.2, 0.5]])
    claimed = np.array([[0.0, 0.5, 0.8], [0.5, 0.0, 0.8], [0.2, 0.2, 0.0]])
    judge = Judge(level=0.95, seeks="condorcet", n_arms=3, margin=margin)
    account = _RegretAccount(settings(truth).truths[0], [0, 1, 2])
    answer = _answer(judge, Standing(np.round(50_000 * claimed), 0), account, [0, 1, 2], ties)
    assert answer == Answer("unbeaten", 7, 0.0, wrong)


@pytest.mark.parametrize("compiled", [True, False])
def test_the_end_by_a_smallest_difference_is_an_answer(compiled: bool) -> None:
    asked = Settings(
        NEAR, [("top_two", {"smallest_difference": 0.1})], horizon=3000, runs=70, seed=7,
        until_sure=0.95, regret="copeland", compiled=compiled,
    )  # fmt: skip
    found = [measure(asked, asked.specs[0], run).answer for run in range(5)]
    assert all(each and each.verdict in {"unbeaten", "champion"} for each in found)
    assert not any(each and each.wrong for each in found)
    assert any(each and each.verdict == "unbeaten" for each in found)


def test_an_answer_is_judged_by_the_truth_of_its_time() -> None:
    early, late = (
        answers(settings(ORDER, changes={t: 1 - ORDER}, regret="condorcet")) for t in (1400, 1)
    )
    assert not any(answer.wrong for answer in early)
    assert {answer.verdict for answer in late} == {"champion"}
    assert not any(answer.wrong for answer in late), "the first duel is forgiven"


def test_with_a_delay_an_answer_comes_later() -> None:
    prompt, delayed = answers(settings(ORDER)), answers(settings(ORDER, delay=FixedDelay(200)))
    for one, other in zip(prompt, delayed, strict=True):
        assert other.verdict == "champion"
        assert other.duels > one.duels


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0, float("nan")])
def test_a_confidence_out_of_range_is_refused(level: float) -> None:
    with pytest.raises(ConfigurationError, match=r"than 1, such as 0.95 \(found"):
        settings(ORDER, until_sure=level)
