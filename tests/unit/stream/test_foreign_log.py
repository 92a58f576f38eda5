"""A click log in another format: records by outcome, chunks and restarts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config import Config
from streamduel.errors import SnapshotError
from streamduel.monitoring.view_parts import Impressions
from streamduel.stream.alarms import alarms
from streamduel.stream.routing import MAX_REASONS
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.unit.stream.restarts import LOG, run

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
START = 1_790_000_000_000
UBI: dict[str, Any] = {"name": "ubi", "experiment": "search"}


def config(log_format: Any = UBI, **experiment: Any) -> Config:
    return Config.model_validate(
        {
            "source": {"format": log_format}, "sink": {}, "snapshots": {},
            "dedupe": {"window_records": 200, "window_ms": 60_000},
            "experiments": {"search": {"arms": ARMS, "join_window_ms": 5_000, **experiment}},
        }
    )  # fmt: skip


def ubi(seed: int, count: int) -> list[Record]:
    """Queries of two rankers with their events, and others; out of order, some damaged."""
    rng = random.Random(seed)
    made: list[Record] = []
    for number in range(count):
        now = START + number * 40
        back = rng.randint(130, 180) if rng.random() < 0.1 else rng.randint(-3, 30)
        query = f"q-{max(0, number - back)}"
        record: dict[str, Any] = {"query_id": query, "timestamp": now, "client_id": "c"}
        chance = rng.random()
        if chance < 0.4:
            a, b = rng.sample(ARMS, 2)
            teams = [rng.choice([a, b]) for _ in range(3)]
            shown = {"query_attributes": {"a": a, "b": b, "teams": teams}}
            record |= {"query_id": f"q-{number}", "query_response_hit_ids": ["d0", "d1", "d2"]}
            record |= shown if chance < 0.35 else {}
        else:
            record["action_name"] = rng.choice(["click", "click", "item_click", "hover", "login"])
            record["event_attributes"] = {"object": {"object_id": f"d{rng.randint(0, 3)}"}}
        value = encode(record)
        if chance > 0.97:
            value = rng.choice([b"{", b"[]", b"", encode({"index": {}})])
        made.append(Record(number, value, now if seed % 2 else None))
    return made


def task_of(made: Config, log: list[Record]) -> PartitionTask:
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    task.fold(log)
    return task


@pytest.mark.parametrize("seed", [1, 2])
def test_every_record_is_counted_once(seed: int) -> None:
    log = ubi(seed, 600)
    task = task_of(config(), log)
    task.take_commit()
    experiment = task.experiments["search"]
    ignored = task.ignored
    assert set(ignored) == {"hover", "login", "query without teams", "bulk action"}
    told = sum(experiment.tallies.values()) + experiment.attribution.pending
    assert told + sum(ignored.values()) == len(log)
    assert min(experiment.tallies[it] for it in ("accepted", "late", "unjoined")) > 0
    assert experiment.policy.duels > 100
    assert experiment.tallies["dead_letter"] == sum(task.dead_letters.values()) > 3


@pytest.mark.parametrize("sides", ["query", "events"])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(data: st.DataObject, sides: str) -> None:
    log = ubi(data.draw(st.integers(0, 50)), 300)
    made = config({**UBI, "sides": sides, "pair": ARMS[:2]}, decide_every=2)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log) - 1), max_size=20)))
    restarts = set(data.draw(st.lists(st.sampled_from(cuts)))) if cuts else set()
    assert run(made, log, cuts, restarts) == run(made, log, [], set())


@pytest.mark.parametrize("others", [1, 98, 99, 100, 101, 150, 199, 200, 201])
def test_a_query_of_events_may_be_named_again_at_any_distance(others: int) -> None:
    """Each click enters the dedupe window of 200 twice, as an impression and as a click."""
    queries = ["q", *(f"before-{n}" for n in range(others)), "q", *(f"x-{n}" for n in range(210))]
    shown = {"object": {"object_id": "d"}, "search_config": ARMS[0]}
    event = {"action_name": "click", "timestamp": START, "event_attributes": shown}
    log = [
        Record(n, encode({**event, "query_id": query, "client_id": f"user {n}"}))
        for n, query in enumerate(queries)
    ]
    made = config({**UBI, "sides": "events", "pair": ARMS[:2]})
    cuts = list(range(1, len(log), 7))
    assert run(made, log, cuts, set(cuts)) == run(made, log, [], set())
    experiment = task_of(made, log).experiments["search"]
    assert len(experiment.attribution) <= 100
    assert sum(experiment.tallies.values()) >= 2 * len(log) - 1


def test_dead_letters_contain_the_foreign_record() -> None:
    broken = b'{"query_id": "q", "action_name": "click", "timestamp": 1}'
    commit = task_of(config(), [Record(0, broken, START)]).take_commit()
    [letter] = [json.loads(message.value) for message in commit.dead_letters]
    assert letter["value"] == broken.decode()
    assert letter["reason"] == "invalid_record"
    assert letter["error"].startswith("a click must name its place in")


def test_the_format_of_a_click_log_must_not_change() -> None:
    task = task_of(config(), ubi(1, 20))
    entries = task.take_commit().entries
    assert PartitionTask(config(), LOG, 0, entries).next_offset == 20
    for other, named in (({**UBI, "sides": "events"}, "'ubi'"), (None, "'ubi'")):
        with pytest.raises(SnapshotError) as refused:
            PartitionTask(config(other), LOG, 0, entries)
        assert str(refused.value).startswith(f"source.format must stay what it was, {named}")


def test_the_number_of_counted_reasons_is_limited() -> None:
    log = [
        Record(number, encode({"query_id": "q", "action_name": f"a-{number}", "timestamp": START}))
        for number in range(MAX_REASONS + 50)
    ]
    ignored = task_of(config(), log).ignored
    assert (len(ignored), ignored["other"]) == (MAX_REASONS + 1, 50)


def test_a_tombstone_is_a_dead_letter() -> None:
    task = task_of(config(), [Record(0, None, START)])
    assert task.dead_letters == {"invalid_record": 1}


@pytest.mark.parametrize(("sides", "judged"), [("events", 0), ("query", 200)])
def test_only_logs_that_tell_the_ranks_show_unfair_services(sides: str, judged: int) -> None:
    log = []
    for number in range(200):
        event = {"action_name": "impression", "event_attributes": {"search_config": "bm25"}}
        query = {"query_attributes": {"teams": ["bm25", "ltr-v1"]}}
        record = {"query_id": f"q-{number}", **(event if sides == "events" else query)}
        log.append(Record(number, encode(record), START + number))
    made = config({**UBI, "sides": sides, "pair": ARMS[:2]})
    task = task_of(made, log)
    for each in (task, PartitionTask(made, LOG, 0, task.take_commit().entries)):
        experiment = each.experiments["search"]
        conformance, view = experiment.impressions.conformance, Impressions.of(experiment)
        assert (conformance.impressions, view.shown) == (200, 200)
        assert (conformance.judged, view.judged, bool(view.coins)) == (judged, judged, judged > 0)
        unfair = "services do not interleave fairly" in alarms(experiment)
        assert unfair == (sides == "query")
