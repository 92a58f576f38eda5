"""Equal click logs give equal bytes while arms, batches, pauses and status change."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel import policies
from streamduel.config import Config
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.logs import ARMS, values
from tests.unit.stream.restarts import LOG, Output, run

RECORDS = 550
NEWCOMERS = ("new-0", "new-1", "new-2")
START = 1_790_000_000_000
EXPERIMENTS = ("search", "shop")

Time = Literal["broker", "event", "none"]


def turbulent(seed: int, time: Time) -> list[Record]:
    """A click log of duels, counts, duplicates, invalid records and all control records.

    A record may name an arm before it joins and after it has left. With an even seed changes are
    few, so that batches come to their end; with an odd one, many.
    """
    rng = random.Random(seed)
    often = 0.06 if seed % 2 else 0.01
    made: list[tuple[str, bytes]] = []
    duels = values(seed, RECORDS, EXPERIMENTS, (*ARMS[:4], *NEWCOMERS), 0.05, 0.02)
    for number, (experiment, value) in enumerate(duels):
        made.append((experiment, value))
        chance = rng.random()
        if chance < often:
            made.append((experiment, control(rng, experiment, number)))
        elif chance < often + 0.05:
            made.append((experiment, landslide(rng, experiment, number)))
        elif chance < often + 0.07:
            made.append(rng.choice(made[-60:]))
    return [
        Record(offset, stripped(value) if time == "none" else value,
               START + offset * 9 - offset % 13 * 20 if time == "broker" else None,
               experiment.encode())
        for offset, (experiment, value) in enumerate(made)
    ]  # fmt: skip


def control(rng: random.Random, experiment: str, number: int) -> bytes:
    actions = ["pause", "resume", "add_arm", "retire_arm", "reset", "stop", "freeze_pair",
               "unfreeze_pair"]  # fmt: skip
    action = rng.choices(actions, weights=[4, 9, 8, 6, 1, 2, 3, 3])[0]
    arm, a, b = (rng.choice([*NEWCOMERS, *NEWCOMERS, *ARMS[:4], None]) for _ in range(3))
    return encode(
        {"type": "control", "id": f"c-{number}", "experiment": experiment, "action": action,
         "arm": arm, "a": a, "b": b, "ts": START + number * 7}
    )  # fmt: skip


def landslide(rng: random.Random, experiment: str, number: int) -> bytes:
    """Counts large enough to fill a batch, pass a horizon or end exploration."""
    first, second = rng.choice([(0, 3), (1, 3), (2, 3), (1, 2)])
    return encode(
        {"type": "duels", "id": f"l-{number}", "experiment": experiment, "a": ARMS[first],
         "b": ARMS[second], "wins_a": rng.randint(0, 9), "wins_b": rng.randint(20, 200), "ties": 0,
         "ts": START + number * 7}
    )  # fmt: skip


def stripped(value: bytes) -> bytes:
    """A record without its `ts`; an invalid one as it is."""
    try:
        record = json.loads(value)
    except ValueError:
        return value
    if isinstance(record, dict):
        record.pop("ts", None)
    return encode(record)


BATCHED: dict[str, Any] = {
    "batch_republish_ms": 400, "batch_deadline_ms": 1_100, "batch_min_fill": 0.3,
}  # fmt: skip
STOP = {"confidence": 0.5, "min_duels": 90}
RAILS: dict[str, Any] = {
    "control_arm": ARMS[1], "min_share": 0.15, "max_share": 0.4,
    "fallback": {"arm": ARMS[0], "idle_ms": 1_000},
}  # fmt: skip
FROZEN = {**RAILS, "freeze_pair": [ARMS[2], ARMS[0]]}
CASES: dict[str, dict[str, Any]] = {
    "c2b": {"policy": {"name": "c2b", "horizon": 1_500, "rounds": 7}},
    "c2b-deadline": {"policy": {"name": "c2b", "horizon": 1_500, "rounds": 7}, **BATCHED},
    "c2b-stop": {"policy": {"name": "c2b", "horizon": 10**6}, **BATCHED, "stop": STOP},
    "c2b-rarely": {"policy": {"name": "c2b", "horizon": 1_000}, "decide_every": 50, "slate": 9},
    "c2b-short": {"policy": {"name": "c2b", "horizon": 150}, **BATCHED, "decide_every": 900},
    "pcomp": {"policy": {"name": "pcomp", "horizon": 4_000, "rounds": 9}, **BATCHED},
    "pcomp-stop": {"policy": {"name": "pcomp", "horizon": 4_000}, "stop": STOP},
    "rucb": {"policy": {"name": "rucb"}, "stop": STOP},
    "rucb-slate": {"policy": {"name": "rucb"}, "decide_every": 7, "slate": 5, "stop": STOP},
    "rmed1": {"policy": {"name": "rmed1"}, "decide_every": 3, "slate": 3},
    "double-thompson": {"policy": {"name": "double_thompson"}, "decide_every": 4, "slate": 2},
    "interleaved-filter": {"policy": {"name": "interleaved_filter_2", "horizon": 1_500}},
    "rucb-window": {"policy": {"name": "rucb", "window": 64}, "decide_every": 2, "slate": 2},
    "double-thompson-window": {
        "policy": {"name": "double_thompson", "window": 100},
        "decide_every": 5,
        "slate": 3,
    },
    "guarded": {"decide_every": 3, "slate": 3, "stop": STOP, "guardrails": RAILS},
    "guarded-batches": {
        "policy": {"name": "c2b", "horizon": 1_500, "rounds": 7},
        **BATCHED,
        "guardrails": RAILS,
    },
    "frozen": {"guardrails": FROZEN, "decide_every": 4, "slate": 4},
    "frozen-batches": {
        "policy": {"name": "pcomp", "horizon": 4_000},
        **BATCHED,
        "guardrails": FROZEN,
    },
    "savage": {"policy": {"name": "condorcet_savage", "horizon": 1_500}, "decide_every": 5},
}


def config(case: str | dict[str, Any]) -> Config:
    changes = CASES[case] if isinstance(case, str) else case
    experiment = {"arms": list(ARMS[:4]), "seed": 7, **changes}
    return Config.model_validate(
        {
            "source": {}, "sink": {}, "snapshots": {},
            "dedupe": {"window_records": 120, "window_ms": 1_500},
            "experiments": {"search": experiment, "shop": {**experiment, "ties": "drop"}},
        }
    )  # fmt: skip


@cache
def in_one_run(case: str, seed: int, time: Time) -> tuple[list[Record], Output]:
    log = turbulent(seed, time)
    return log, run(config(case), log, [], set())


TIMES = pytest.mark.parametrize("time", ["broker", "event", "none"])


@TIMES
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts_around_changes(
    data: st.DataObject, case: str, time: Time
) -> None:
    log, expected = in_one_run(case, data.draw(st.integers(0, 3)), time)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log) - 1), max_size=12)))
    restarts = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    assert run(config(case), log, cuts, restarts) == expected


@TIMES
@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_commits_after_every_record(case: str, time: Time) -> None:
    log, expected = in_one_run(case, 4, time)
    cuts = list(range(1, len(log)))
    assert run(config(case), log, cuts, restarts=set(cuts[::29])) == expected


@TIMES
@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_uncommitted_work(case: str, time: Time) -> None:
    log, expected = in_one_run(case, 4, time)
    task, output, rest = PartitionTask(config(case), LOG, 0), Output(), log
    task.begin(0)
    luck = random.Random(case)
    while rest:
        cut = luck.choice([1, 1, 2, 3, 50])
        task.fold(rest[:cut])
        rest = rest[cut:]
    output.take(task.take_commit())
    assert output == expected


@pytest.mark.parametrize("policy", policies.names())
def test_results_of_every_policy_do_not_depend_on_chunks_around_changes(policy: str) -> None:
    needs = [one.name for one in policies.get(policy).declared.values() if one.required]
    experiment = {
        "policy": {"name": policy, **dict.fromkeys(needs, 2_500)},
        "decide_every": 3, "slate": 2, "stop": {"confidence": 0.9}, "batch_deadline_ms": 900,
        "batch_min_fill": 0.2, "batch_republish_ms": 300,
    }  # fmt: skip
    log = turbulent(6, "broker")
    cuts = list(range(1, len(log), 2))
    output = run(config(experiment), log, cuts, restarts=set(cuts[::60]))
    assert output == run(config(experiment), log, [], set())


@contextmanager
def no_garbage() -> Iterator[None]:
    """Objects of streamduel that are not needed any more are freed without the collector."""
    gc.freeze()  # the collector does not look at what is there already, which takes most time
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        found = [type(each) for each in gc.garbage]
        assert not [each for each in found if each.__module__.startswith("streamduel")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


def of_a_client(record: Record) -> Record:
    value = record.value
    assert isinstance(value, bytes)
    client = b'{"client":"u-%d",' % (record.offset % 40)
    return record._replace(value=value.replace(b"{", client, 1))


LIMITED: dict[str, Any] = {"segments": {"class": ["x", "y"]}, "max_per_client": 3}


@pytest.mark.parametrize("case", [*CASES, "limited", *policies.names()])
def test_a_partition_that_is_lost_is_freed_without_the_garbage_collector(case: str) -> None:
    """The service lets it run rarely, and a window has some hundred megabytes."""
    if case in CASES or case == "limited":
        changes = CASES.get(case, LIMITED)
    else:
        needs = [it.name for it in policies.get(case).declared.values() if it.required]
        changes = {"policy": {"name": case, **dict.fromkeys(needs, 2_500)}}
    log, made = [of_a_client(it) for it in turbulent(5, "broker")], config(changes)
    output = run(made, log[:300], [100, 200], {100})
    with no_garbage():
        run(made, log, [100, 200, 300], {200})
        task = PartitionTask(made, LOG, 0, output.entries)
        del task  # while the click log is read again


def test_the_logs_contain_all_cases() -> None:
    """Otherwise the tests above would show nothing: every status, reason and batch event."""
    outputs = [in_one_run(case, seed, "broker")[1] for case in CASES for seed in (4, 5)]
    more = ("rmed1", "c2b", "c2b-deadline", "rucb", "rucb-slate", "frozen")
    outputs += [in_one_run(case, seed, "broker")[1] for case in more for seed in range(4)]
    published = [json.loads(it) for output in outputs for it in output.assignments]
    assert {it["status"] for it in published} == {"running", "paused", "finished"}
    served = {pair[side] for it in published for pair in it["pairs"] for side in "ab"}
    assert served >= {*ARMS[:4], *NEWCOMERS}
    errors = [json.loads(it)["error"] for output in outputs for it in output.dead_letters]
    for words in ("unknown arm", "retired at", "in the experiment already", "stays taken",
                  "action must be", "must name an 'arm'", "not JSON"):  # fmt: skip
        assert any(words in error for error in errors), words
    states = [
        json.loads(output.entries[f"experiment/{name}"])["state"]
        for output in outputs for name in EXPERIMENTS
    ]  # fmt: skip
    ended = {it["policy"] for it in published if it["status"] == "finished"}
    assert ended >= {"rucb", "top_two", "c2b", "interleaved_filter_2"}, (
        "sure, past, or one arm left"
    )
    for tally, count in (("duplicate", 5), ("late", 3), ("unjoined", 1)):
        assert any(state["tallies"][tally] >= count for state in states), tally
    assert any(state["open"]["impressions"] > 2 for state in states)
    assert any(state["added"] and state["retired"] for state in states)
    assert {state["policy"]["own"].get("round") for state in states} >= {None, 1, 2}
    rails = [state["guardrails"] for state in states]
    assert {bool(it["frozen"]) for it in rails} == {True, False}
    for_guardrails = [pair for it in rails for pair in it["served"]]
    assert {a == b for a, b, _ in for_guardrails} == {True, False}, "control alone, frozen pairs"
    assert any("frozen pair" in error for error in errors)
    assert any(it["valid_until"] for it in published)
