"""Conformance: unfair teams, unassigned pairs and ties."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from streamduel.interleaving import probabilistic, team_draft
from streamduel.interleaving.base import Team
from streamduel.preference.evidence import unfairness
from streamduel.stream.conformance import GRACE_MS, MOST_REPLACED, Conformance
from streamduel.stream.plan import PairPlan, Plan
from streamduel.stream.team_patterns import WHOLE, TeamPatterns, features_of
from tests.unit.stream.folding import (
    ARMS,
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    config,
    text,
)

START = 1_790_000_000_000
Interleave = Callable[[random.Random], Sequence[Team]]


def interleaved(method: Any, short: bool, length: int) -> Interleave:
    """A fair method; one ranker returns at most four documents."""

    def teams(luck: random.Random) -> Sequence[Team]:
        first = luck.sample(range(30), luck.randint(0, 4) if short else 20)
        second = luck.sample(range(30), 20)
        return [*method.interleave(first, second, length, luck).teams]

    return teams


def favoured(luck: random.Random) -> Sequence[Team]:
    """Side a has the first pick in two of three impressions; sizes are even."""
    return ["a", "b"] * 5 if luck.random() < 2 / 3 else ["b", "a"] * 5


def greedy(luck: random.Random) -> Sequence[Team]:
    """Every rank is side a's with probability 0.55."""
    return ["a" if luck.random() < 0.55 else "b" for _ in range(10)]


def always_first(luck: random.Random) -> Sequence[Team]:
    return ["a", "b"] * 5


def larger(luck: random.Random) -> Sequence[Team]:
    """A coin decides the top rank and the longer team; the team of a is longer by more."""
    top, others = ("a", "aaaaaaaab") if luck.random() < 0.5 else ("b", "aaaabbbbb")
    return [top, *luck.sample(others, 9)]  # type: ignore[list-item]


def buried(luck: random.Random) -> Sequence[Team]:
    """Top ranks and sizes are even, but below the top all of side a is above all of b."""
    return [*("aaaaabbbbb" if luck.random() < 0.5 else "baaaaabbbb")]


def unlabelled(luck: random.Random) -> Sequence[Team]:
    """Three of ten labels of side b are lost."""
    return [None if team == "b" and luck.random() < 0.3 else team for team in favours_none(luck)]


favours_none = interleaved(team_draft, False, 10)


def seen(teams: Interleave, impressions: int, seed: int = 1) -> float:
    luck, partition = random.Random(seed), Partition()
    for number in range(impressions):
        kind = INTERLEAVING if number % 2 else {**INTERLEAVING, "type": "impression"}
        partition.fold(text(kind, id=f"{number}", teams=[*teams(luck)], clicks=[]))
    return suspicion(partition, impressions)


def suspicion(partition: Partition, impressions: int) -> float:
    conformance = partition.task.experiments["search"].impressions.conformance
    assert conformance.impressions == impressions
    again = partition.restarted().task.experiments["search"].impressions.conformance
    assert again.state() == conformance.state()
    assert again.coins(ARMS) == conformance.coins(ARMS)
    return unfairness(conformance.coins(ARMS))


@pytest.mark.parametrize("teams", [favoured, greedy, always_first, larger, buried, unlabelled])
def test_unfair_interleaving_is_detected_within_1000_impressions(teams: Interleave) -> None:
    assert seen(teams, 1000) > 0.95


@pytest.mark.parametrize("ranker", ARMS)
def test_favouring_one_ranker_is_detected_on_either_side(
    ranker: str,
) -> None:
    luck, partition = random.Random(3), Partition()
    for number in range(1000):
        a, b = luck.sample(ARMS, 2)
        top = "a" if ranker == a else "b" if ranker == b else luck.choice("ab")
        teams = [top, "b" if top == "a" else "a"] * 3
        partition.fold(text(INTERLEAVING, id=f"{number}", a=a, b=b, teams=teams, clicks=[]))
    assert suspicion(partition, 1000) > 0.95


@pytest.mark.parametrize("length", [9, 10])
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("method", [team_draft, probabilistic])
def test_fair_interleaving_passes(method: Any, short: bool, length: int) -> None:
    assert seen(interleaved(method, short, length), 1000) < 0.95


@pytest.mark.parametrize("method", [team_draft, probabilistic])
@pytest.mark.parametrize("short", [False, True])
def test_features_balance_for_all_rankings(method: Any, short: bool) -> None:
    # Means of 6,000 lists, each from -1 to 1: 5 standard errors are at most 0.065.
    luck = random.Random(8)
    features = np.array([features_of(interleaved(method, short, 7)(luck)) for _ in range(6000)])
    even = [
        (features[:, 0] - features[:, 1]) / 7,
        features[:, 2] - features[:, 3],
        features[:, 4] / WHOLE,
    ]
    assert np.abs(np.mean(even, axis=1)).max() < 0.065


def test_false_alarms_are_within_the_bound() -> None:
    # 400 pairs of coins, checked after each of 1000 tosses: at 0.95 at most 5 %, or 20, ever fail,
    # and with the slack of the bound fewer. 34 or more have a probability below 0.001 even at 5 %.
    luck, suspected = random.Random(5), 0
    for _ in range(400):
        counts = [[0, 0], [0, 0]]
        worst = 0.0
        for toss in range(1000):
            for coin in counts:
                coin[luck.getrandbits(1)] += 1
            if toss % 10 == 9:
                worst = max(worst, unfairness([(a, b) for a, b in counts]))
        suspected += worst >= 0.95
    assert suspected < 34


def test_without_impressions_there_is_no_verdict() -> None:
    assert unfairness([]) == unfairness([(0, 0), (0, 0)]) == 0


def shown(number: int, a: str, b: str) -> bytes:
    return text(INTERLEAVING, id=f"{number}", a=a, b=b, teams=["a", "b"], clicks=[0])


def test_impressions_of_unassigned_pairs_are_counted() -> None:
    partition = Partition(config(search={"guardrails": {"freeze_pair": ["bm25", "ltr-v1"]}}))
    conformance = partition.task.experiments["search"].impressions.conformance
    partition.fold_at(START, shown(1, "bm25", "ltr-v1"), shown(2, "ltr-v1", "bm25"))
    assert conformance.unassigned == 0, "whichever side"
    partition.fold_at(START, shown(3, "bm25", "ltr-v2"))
    assert conformance.unassigned == 1
    freeze = text(CONTROL, action="freeze_pair", a="bm25", b="ltr-v2")
    partition.fold_at(START, freeze, shown(4, "bm25", "ltr-v2"), shown(5, "bm25", "ltr-v1"))
    assert conformance.unassigned == 1, "what was on its way, or cached"
    partition.fold_at(START + GRACE_MS, shown(6, "bm25", "ltr-v1"))
    assert conformance.unassigned == 1
    partition.fold_at(START + GRACE_MS + 1, shown(7, "bm25", "ltr-v1"), shown(8, "bm25", "ltr-v2"))
    assert conformance.unassigned == 2
    pause = [text(CONTROL, id=f"p-{it}", action=it) for it in ("pause", "resume")]
    partition.fold_at(START + GRACE_MS + 1, *pause)
    assert json.loads(json.dumps(conformance.state())) == conformance.state()
    remembered = [pair[:2] for pair in conformance.state()["assigned"]]
    assert ["bm25", "ltr-v2"] in remembered
    assert ["bm25", "ltr-v1"] not in remembered, "what is long past is forgotten"


def test_a_record_with_an_epoch_is_checked_against_that_assignment() -> None:
    partition = Partition(config(search={"guardrails": {"freeze_pair": ["bm25", "ltr-v1"]}}))
    conformance = partition.task.experiments["search"].impressions.conformance

    def serve(number: int, a: str, b: str, epoch: int) -> int:
        partition.fold_at(START, text(json.loads(shown(number, a, b)), epoch=epoch))
        return conformance.unassigned

    def freeze(number: int, a: str, b: str) -> None:
        control = text(CONTROL, id=f"c-{number}", action="freeze_pair", a=a, b=b)
        partition.fold_at(START, control)

    assert serve(1, "bm25", "ltr-v1", 1) == 0
    freeze(1, "bm25", "ltr-v2")
    second = partition.task.experiments["search"].decisions.epoch
    assert second > 1
    assert serve(2, "bm25", "ltr-v1", 1) == 0, "a session that keeps its pair says so"
    assert serve(3, "ltr-v1", "bm25", second) == 1, "of another assignment than it says"
    assert serve(4, "ltr-v1", "ltr-v2", second) == 2, "of none"
    freeze(2, "bm25", "ltr-v1")
    third = partition.task.experiments["search"].decisions.epoch
    assert serve(5, "bm25", "ltr-v2", third) == 3
    assert serve(6, "bm25", "ltr-v2", second) == 3
    assert serve(7, "bm25", "ltr-v1", 1) == 3, "its earlier time in the plan is forgotten"
    again = partition.restarted().task.experiments["search"].impressions.conformance
    assert again.state() == conformance.state()


def test_no_more_than_the_newest_replaced_pairs_are_kept() -> None:
    """Assignments of 4,000 pairs each, none of which comes back."""
    conformance, size = Conformance(TeamPatterns(), None), 4_000
    names = [f"{number:05}" for number in range(10 * size)]
    plans = [
        Plan("x", tuple(PairPlan("x", name, 1) for name in names[at : at + size]), "uniform")
        for at in range(0, len(names), size)
    ]
    for epoch, (before, plan) in enumerate(zip([None, *plans[:-1]], plans, strict=True), 1):
        conformance.decided(before, plan, epoch, START)
        assert len(conformance.state()["assigned"]) <= MOST_REPLACED + 2 * size
    for number, unassigned in ((0, 1), (-2 * size, 1), (-size - 1, 1), (-1, 1), (size, 2)):
        conformance.shown(names[number], "x", ["a", "b"], None, START)
        assert conformance.unassigned == unassigned


def test_the_order_of_a_pair_does_not_matter() -> None:
    partition = Partition(config(search={"arms": ["x", "y"]}))
    conformance = partition.task.experiments["search"].impressions.conformance
    partition.fold(text(CONTROL, id="f", action="freeze_pair", a="y", b="x"))
    partition.fold(text(CONTROL, id="u", action="unfreeze_pair"))
    partition.fold(shown(1, "y", "x"), text(json.loads(shown(2, "x", "y")), epoch=99))
    assert conformance.unassigned == 0


def test_the_counts_of_a_retired_arm_are_dropped() -> None:
    partition = Partition()
    partition.fold(shown(1, "bm25", "ltr-v2"), shown(2, "ltr-v1", "ltr-v2"))
    conformance = partition.task.experiments["search"].impressions.conformance
    assert {*conformance.state()["arms"]} == {*ARMS}
    partition.fold(text(CONTROL, action="retire_arm", arm="ltr-v2"))
    assert {*conformance.state()["arms"]} == {"bm25", "ltr-v1"}


def test_a_reset_forgets_unfair_interleaving() -> None:
    luck, partition = random.Random(2), Partition(config(search={"decide_every": 1}))
    experiment = partition.task.experiments["search"]

    def fold(kind: str, teams: Interleave) -> list[str]:
        records = ({**INTERLEAVING, "id": f"{kind}-{it}", "clicks": [0]} for it in range(200))
        partition.fold(*(text(it, teams=[*teams(luck)]) for it in records))
        return [it.text or "" for it in experiment.timeline.moments if it.event == "alarm"]

    alarm = "services do not interleave fairly"
    assert fold("first", always_first) == [alarm]
    ranks = experiment.impressions.conformance.ranks
    partition.fold(text(CONTROL, action="reset"))
    assert suspicion(partition, 200) == 0
    assert experiment.impressions.conformance.ranks == ranks
    assert experiment.impressions.conformance.judged == 0
    assert fold("fair", favours_none) == [alarm]
    assert suspicion(partition, 400) < 0.95
    assert experiment.impressions.conformance.judged == 200
    assert fold("again", always_first) == [alarm, alarm]
    assert suspicion(partition, 600) > 0.99


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_ties_are_counted_even_if_dropped(ties: str) -> None:
    records: list[dict[str, Any]] = [
        {**DUEL, "id": "1", "winner": "tie"},
        {**DUEL, "id": "2", "winner": "a"},
        {**DUEL, "id": "3", "b": "bm25", "winner": None},
        {**INTERLEAVING, "id": "4", "clicks": []},
        {**INTERLEAVING, "id": "5"},
        {**DUELS, "id": "6", "ties": 7},
        {**INTERLEAVING, "type": "impression", "id": "7"},
    ]
    for decide_every in (1, 100):
        made = config(search={"ties": ties, "decide_every": decide_every, "join_window_ms": 10})
        partition = Partition(made)
        partition.fold_at(START, *map(text, records))
        partition.fold_at(START + 11, text(DUEL, id="8"))
        partition.task.experiments["search"].buffer.learn()
        assert partition.task.experiments["search"].duels.ties == 1 + 1 + 7 + 1
