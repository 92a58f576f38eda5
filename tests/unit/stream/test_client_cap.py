"""Caps per client, against a slow implementation of the definition, and over restarts."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config import Config
from streamduel.testing import Record
from tests.unit.stream.folding import ARMS, CONTROL, DUEL, DUELS, INTERLEAVING, Partition, text
from tests.unit.stream.folding import config as config_of
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import START, WINDOW, click, impression

CAP = 3


def config(window_records: int = 10**6, window_ms: int = 3_600_000, **search: Any) -> Config:
    return config_of(
        search={"max_per_client": CAP, "join_window_ms": WINDOW, **search},
        dedupe={"window_records": window_records, "window_ms": window_ms},
    )


def told(partition: Partition) -> dict[str, int]:
    return {name: count for name, count in partition.tallies().items() if count}


def duel(number: int, client: str | None = "u-1", **changes: Any) -> bytes:
    return text(DUEL, id=f"d-{number}", client=client, **changes)


def test_a_client_counts_up_to_the_cap() -> None:
    partition = Partition(config())
    partition.fold(*(duel(number) for number in range(5)))
    assert told(partition) == {"accepted": 3, "capped": 2}
    assert partition.duels() == 3


def test_other_clients_and_records_without_one_are_not_affected() -> None:
    partition = Partition(config())
    partition.fold(*(duel(number) for number in range(5)))
    partition.fold(*(duel(number, client="u-2") for number in range(10, 13)))
    partition.fold(*(duel(number, client=None) for number in range(20, 30)))
    assert told(partition) == {"accepted": 16, "capped": 2}


def test_without_a_cap_nothing_is_capped() -> None:
    partition = Partition(config(max_per_client=None))
    partition.fold(*(duel(number) for number in range(5)))
    assert told(partition) == {"accepted": 5}
    assert "capped" not in partition.task.experiments["search"].state()["tallies"]


def test_a_count_of_duels_weighs_its_number() -> None:
    partition = Partition(config())
    partition.fold(text(DUELS, id="1", client="u-1", wins_a=1, wins_b=1))
    partition.fold(text(DUELS, id="2", client="u-1", wins_a=1, wins_b=1))
    assert told(partition) == {"accepted": 1, "capped": 1}
    assert partition.duels() == 2
    partition.fold(text(DUELS, id="3", client="u-2", wins_a=4, wins_b=0))
    assert told(partition) == {"accepted": 1, "capped": 2}


def test_duplicates_count_against_the_cap_and_stay_duplicates() -> None:
    partition = Partition(config())
    partition.fold(duel(1), duel(1), duel(1), duel(2))
    assert told(partition) == {"accepted": 1, "duplicate": 2, "capped": 1}


def test_a_client_counts_again_when_its_records_have_left_the_dedupe_window() -> None:
    partition = Partition(config(window_ms=1000, join_window_ms=1000))
    partition.fold_at(START, *(duel(number) for number in range(4)))
    partition.fold_at(START + 1000, duel(4))
    partition.fold_at(START + 1001, duel(5), duel(6))
    assert told(partition) == {"accepted": 5, "capped": 2}


def test_a_client_counts_again_after_as_many_records_as_the_dedupe_window_holds() -> None:
    partition = Partition(config(window_records=4))
    partition.fold(*(duel(number) for number in range(4)))
    partition.fold(*(text(DUEL, id=f"x-{n}", experiment="ads", a="x", b="y") for n in range(2)))
    partition.fold(duel(5))
    assert told(partition) == {"accepted": 4, "capped": 1}


def test_a_capped_impression_joins_its_clicks_and_is_no_duel() -> None:
    partition = Partition(config())
    partition.fold_at(START, *(duel(number) for number in range(3)))
    partition.fold_at(START, click(1, 1), impression(1, client="u-1"), click(2, 1, rank=0))
    assert told(partition) == {"accepted": 5, "capped": 1}
    partition.fold_at(START + WINDOW + 1, duel(9, client=None))
    experiment = partition.task.experiments["search"]
    assert (partition.duels(), experiment.duels.ties) == (4, 0)
    assert not experiment.attribution


def test_a_capped_list_is_not_checked_for_fairness() -> None:
    partition = Partition(config())
    partition.fold(*(text(INTERLEAVING, id=f"i-{n}", client="u-1") for n in range(5)))
    assert partition.task.experiments["search"].impressions.conformance.impressions == CAP


def test_clicks_and_control_records_are_not_capped() -> None:
    partition = Partition(config())
    partition.fold_at(START, impression(1, client="u-1"))
    partition.fold_at(START, *(click(number, 1, client="u-1") for number in range(5)))
    partition.fold_at(START, *(text(CONTROL, id=f"r-{n}", client="u-1") for n in range(5)))
    assert told(partition) == {"accepted": 11}


def test_invalid_records_do_not_count_against_the_cap() -> None:
    partition = Partition(config())
    partition.fold(*(duel(number, a="unknown") for number in range(5)), duel(9))
    assert told(partition) == {"accepted": 1, "dead_letter": 5}


def noise(rng: random.Random, count: int, step: int) -> list[Record]:
    """Records of a few clients, duplicates and records without a client."""
    made: list[Record] = []
    now = START
    for offset in range(0, count * step, step):
        now += rng.choice([0, 0, 1, WINDOW // 10, WINDOW])
        client = rng.choice([None, "u-1", "u-1", "u-2", "u-3", *(f"v-{n}" for n in range(9))])
        chance = rng.random()
        a, b = rng.sample(ARMS, 2)
        if chance < 0.3:
            value = impression(offset, client=client, a=a, b=b)
        elif chance < 0.5:
            value = click(offset, max(0, offset - step * rng.randint(-2, 5)), client=client)
        elif chance < 0.75:
            value = text(DUEL, id=f"d-{offset}", client=client, a=a, b=b)
        elif chance < 0.8:
            value = text(DUELS, id=f"n-{offset}", client=client, wins_a=rng.randint(1, 3))
        elif chance < 0.9 and made:
            value = rng.choice(made[-20:]).value or b""
        else:
            value = text(INTERLEAVING, id=f"l-{offset}", client=client, a=a, b=b)
        made.append(Record(offset, value, now, b"search"))
    return made


def expected(log: list[Record], window_records: int, window_ms: int) -> Counter[str]:
    """The outcomes of all records but clicks, found by searching the whole click log each time."""
    outcomes: Counter[str] = Counter()
    seen: list[tuple[int, dict[str, Any]]] = []
    for record in log:
        now, event = record.timestamp or 0, json.loads(record.value or b"")
        window = [it for at, it in seen if at >= now - window_ms][-window_records:]
        seen.append((now, event))
        if event["type"] == "click":
            continue
        mine = [it for it in [*window, event] if it.get("client") == event.get("client")]
        weight = sum(_duels(it) for it in mine)
        if any(it["id"] == event["id"] for it in window):
            outcomes["duplicate"] += 1
        elif event.get("client") is not None and weight > CAP:
            outcomes["capped"] += 1
        else:
            outcomes["accepted"] += 1
    return outcomes


def _duels(event: dict[str, Any]) -> int:
    if event["type"] == "click":
        return 0
    return event["wins_a"] + event["wins_b"] + event["ties"] if event["type"] == "duels" else 1


@pytest.mark.parametrize("window_records", [9, 40, 10**6])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_outcomes_match_the_definition(window_records: int, seed: int) -> None:
    log = noise(random.Random(seed), 200, 1)
    window_ms = 3 * WINDOW
    partition = Partition(config(window_records, window_ms))
    partition.task.fold(log)
    clicks = Partition(config(window_records, window_ms, max_per_client=None))
    clicks.task.fold(log)
    of_all, found = told(clicks), told(partition)
    wanted = expected(log, window_records, window_ms)
    assert wanted["capped"] > 0
    assert found["capped"] == wanted["capped"]
    assert found["accepted"] == of_all["accepted"] - wanted["capped"]


@pytest.mark.parametrize("window_records", [15, 60, 10**6])
@settings(max_examples=10, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(
    data: st.DataObject, window_records: int
) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    step = data.draw(st.sampled_from([1, 41]))  # with gaps, as compaction leaves, and many blocks
    log = noise(rng, 250, step)
    made = config(window_records, 3 * WINDOW, decide_every=3, slate=2)
    cuts = sorted(rng.sample(range(1, len(log)), data.draw(st.sampled_from([0, 5, 40]))))
    restarts = set(data.draw(st.lists(st.sampled_from(cuts)))) if cuts else set()
    assert run(made, log, cuts, restarts) == run(made, log, [], set())
