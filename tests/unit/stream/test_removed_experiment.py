"""An experiment that is removed from the configuration leaves its neighbours as they are."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from streamduel.config import Config
from streamduel.stream.replay import replay
from streamduel.stream.task import PartitionTask
from streamduel.testing import Broker, Record
from streamduel.testing import run as run_service
from tests.unit.stream.folding import ARMS, config
from tests.unit.stream.restarts import LOG, Output, run
from tests.unit.stream.sealing import changed
from tests.unit.stream.test_time_restarts import ADVANCE, WINDOW, continued, log_of

FOLDED = {"arms": ARMS, "join_window_ms": WINDOW, "decide_every": 3, "max_per_client": 9}


def made_of(names: Sequence[str], window_records: int, open_bytes: int) -> Config:
    return config().model_validate(
        {
            "source": {}, "sink": {}, "snapshots": {},
            "experiments": dict.fromkeys(names, FOLDED),
            "dedupe": {"window_records": window_records, "window_ms": 2 * WINDOW},
            "time": {"max_advance_ms": ADVANCE},
            "limits": {"max_open_bytes": open_bytes},
        }
    )  # fmt: skip


def shared(log: Sequence[Record], rng: random.Random) -> list[Record]:
    """A click log of both experiments; its records name some clients."""
    found = []
    for record in log:
        value = record.value or b""
        if rng.random() < 0.5:
            value = value.replace(b'"search"', b'"ads"')
        if value.startswith(b"{") and rng.random() < 0.5:
            value = value[:-1] + b', "client": "%d"}' % rng.randrange(8)
        found.append(record._replace(value=value))
    return found


def ended(made: Config, log: Sequence[Record], at: int) -> Output:
    """A run without a restart, in which `ads` ends before the record at an index."""
    output = Output()
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    task.fold(log[:at])
    task.end("ads")
    task.fold(log[at:])
    output.take(task.take_commit())
    return output


def of_neighbour(output: Output) -> tuple[Any, ...]:
    """What is visible of `search`, and the state of the partition but for its dead letters."""
    partition = json.loads(output.entries["partition"])
    for field in ("dead_letters", "entries", "checksum"):
        partition.pop(field, None)
    return (
        [it for it in output.assignments if b'"experiment":"search"' in it],
        [it for it in output.dead_letters if b'"experiment":"search"' in it],
        json.loads(output.entries["experiment/search"])["state"],
        partition,
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["healthy", "gaps", "chaos"])
def test_a_removed_experiment_leaves_its_neighbour_as_it_is(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    log = shared(log_of(kind, rng, rng.choice([1, 41])), rng)
    bounds = rng.choice([60, 10**6]), rng.choice([5_000, 10**9])
    both, one = (made_of(names, *bounds) for names in (["ads", "search"], ["search"]))
    at = rng.randrange(1, len(log) - 1)
    restarts = {rng.randrange(at + 1, len(log)) for _ in range(rng.randrange(3))}
    former = run(both, log[:at], [], set())
    after = continued(one, log, at, former.entries, restarts)
    after.assignments = former.assignments + after.assignments
    after.dead_letters = former.dead_letters + after.dead_letters
    assert of_neighbour(after) == of_neighbour(ended(both, log, at))
    assert json.loads(after.entries["experiment/ads"])["ended_at"] == log[at - 1].offset + 1


def removed(both: Config, one: Config, log: Sequence[Record], at: int) -> Broker:
    """The service ran with both experiments up to a record, and then without `ads`."""
    former, broker = Broker(log[:at]), Broker(log)
    run_service(both, former)
    broker.assignments, broker.dead_letters = former.assignments, former.dead_letters
    broker.snapshots = former.snapshots
    run_service(one, broker)
    return broker


@pytest.mark.parametrize("seed", range(4))
def test_a_replay_folds_a_removed_experiment_up_to_its_end(seed: int) -> None:
    rng = random.Random(seed)
    log = shared(log_of("chaos", rng, 1), rng)
    both, one = (made_of(names, 60, 5_000) for names in (["ads", "search"], ["search"]))
    broker = removed(both, one, log, rng.randrange(1, len(log)))
    verdict = replay(one, broker.source(), broker.outlet())
    assert (verdict.difference, verdict.unchecked) == (None, [])
    assert verdict.assignments == len(broker.assignments)


def test_a_replay_names_a_removed_experiment_whose_settings_cannot_be_read() -> None:
    both, one = (made_of(names, 60, 5_000) for names in (["ads", "search"], ["search"]))
    rng = random.Random(1)
    broker = removed(both, one, shared(log_of("healthy", rng, 1), rng), 200)
    entries = changed(
        broker.snapshots[0].entries,
        "experiment/ads",
        lambda entry: entry["settings"].update(policy={"name": "gone"}),
    )
    broker.snapshots[0] = replace(broker.snapshots[0], entries=entries)
    assert replay(one, broker.source(), broker.outlet()).unchecked == ["ads"]
    before = len(broker.assignments)
    run_service(one, broker)  # it starts all the same
    assert len(broker.assignments) == before
