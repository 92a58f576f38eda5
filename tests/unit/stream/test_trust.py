"""What gives a ranker service away: unfair teams, pairs that nobody asked for, ties."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from streamduel.interleaving import team_draft
from streamduel.interleaving.interleaved import Team
from streamduel.preference.fairness import unfairness
from streamduel.stream.trust import GRACE_MS
from tests.unit.stream.folding import CONTROL, DUEL, DUELS, INTERLEAVING, Partition, config, text

START = 1_790_000_000_000
Interleave = Callable[[random.Random], Sequence[Team]]


def lists(luck: random.Random) -> tuple[list[int], list[int]]:
    return luck.sample(range(30), 20), luck.sample(range(30), 20)


def fair(length: int) -> Interleave:
    return lambda luck: team_draft.interleave(*lists(luck), length, luck).teams


def favoured(luck: random.Random) -> Sequence[Team]:
    """Side a has the first pick in two of three impressions; sizes are even."""
    return ["a", "b"] * 5 if luck.random() < 2 / 3 else ["b", "a"] * 5


def greedy(luck: random.Random) -> Sequence[Team]:
    """Every rank is side a's with probability 0.55."""
    return ["a" if luck.random() < 0.55 else "b" for _ in range(10)]


def always_first(luck: random.Random) -> Sequence[Team]:
    return ["a", "b"] * 5


def seen(teams: Interleave, impressions: int, seed: int = 1) -> float:
    luck, partition = random.Random(seed), Partition()
    for number in range(impressions):
        kind = INTERLEAVING if number % 2 else {**INTERLEAVING, "type": "impression"}
        partition.fold(text(kind, id=f"{number}", teams=[*teams(luck)], clicks=[]))
    trust = partition.task.experiments["search"].trust
    assert trust.impressions == impressions
    again = partition.restarted().task.experiments["search"].trust
    assert again.state() == trust.state()
    return unfairness(trust.coins)


@pytest.mark.parametrize("teams", [favoured, greedy, always_first])
def test_a_service_that_interleaves_unfairly_is_noticed_within_1000(teams: Interleave) -> None:
    assert seen(teams, 1000) > 0.95


@pytest.mark.parametrize("length", [9, 10])
def test_team_draft_is_found_fair(length: int) -> None:
    assert seen(fair(length), 1000) < 0.95


def test_fair_coins_are_suspected_no_more_often_than_promised() -> None:
    # 400 pairs of coins, looked at after every one of 1000 tosses: at most 5 % are ever suspected
    # at 0.95, or 20, and with the bound's slack fewer. 34 or more would come with a probability
    # below 0.001 even at 5 %.
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


def test_nothing_tossed_is_nothing_known() -> None:
    assert unfairness([]) == unfairness([(0, 0), (0, 0)]) == 0


def shown(number: int, a: str, b: str) -> bytes:
    return text(INTERLEAVING, id=f"{number}", a=a, b=b, teams=["a", "b"], clicks=[0])


def test_impressions_of_pairs_that_nobody_asked_for_are_counted() -> None:
    partition = Partition(config(search={"guardrails": {"freeze_pair": ["bm25", "ltr-v1"]}}))
    trust = partition.task.experiments["search"].trust
    partition.fold_at(START, shown(1, "bm25", "ltr-v1"), shown(2, "ltr-v1", "bm25"))
    assert trust.unassigned == 0, "whichever side"
    partition.fold_at(START, shown(3, "bm25", "ltr-v2"))
    assert trust.unassigned == 1
    freeze = text(CONTROL, action="freeze_pair", a="bm25", b="ltr-v2")
    partition.fold_at(START, freeze, shown(4, "bm25", "ltr-v2"), shown(5, "bm25", "ltr-v1"))
    assert trust.unassigned == 1, "what was on its way, or cached"
    partition.fold_at(START + GRACE_MS, shown(6, "bm25", "ltr-v1"))
    assert trust.unassigned == 1
    partition.fold_at(START + GRACE_MS + 1, shown(7, "bm25", "ltr-v1"), shown(8, "bm25", "ltr-v2"))
    assert trust.unassigned == 2
    pause = [text(CONTROL, id=f"p-{it}", action=it) for it in ("pause", "resume")]
    partition.fold_at(START + GRACE_MS + 1, *pause)
    assert json.loads(json.dumps(trust.state())) == trust.state()
    remembered = [pair[:2] for pair in trust.state()["assigned"]]
    assert ["bm25", "ltr-v2"] in remembered
    assert ["bm25", "ltr-v1"] not in remembered, "what is long past is forgotten"


@pytest.mark.parametrize("ties", ["half", "drop"])
def test_ties_are_counted_whether_they_are_duels_or_not(ties: str) -> None:
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
        partition.task.experiments["search"].learn()
        assert partition.task.experiments["search"].ties == 1 + 1 + 7 + 1
