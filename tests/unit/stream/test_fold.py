"""Equal click logs give equal bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel import policies
from streamduel.config import Config
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, duel
from tests.logs import ARMS, values
from tests.unit.stream.restarts import LOG, Output, run

RECORDS = 3000


def config(**changes: object) -> Config:
    experiment = {"arms": list(ARMS), "seed": 7, **changes}
    return Config.model_validate(
        {
            "source": {}, "sink": {}, "snapshots": {},
            "dedupe": {"window_records": 300, "window_ms": 4000},
            "experiments": {"search": experiment, "shop": {**experiment, "ties": "drop"}},
        }
    )  # fmt: skip


def log_of(seed: int, *, timestamps: bool) -> list[Record]:
    """A click log whose timestamps sometimes decrease, or that has none."""
    made = values(seed, RECORDS, experiments=("search", "shop"))
    return [
        Record(offset, value, 1_790_000_000_000 + offset * 9 - offset % 13 * 20
               if timestamps else None, experiment.encode())
        for offset, (experiment, value) in enumerate(made)
    ]  # fmt: skip


CHANGES: dict[str, dict[str, object]] = {
    "each-duel": {},
    "slate": {"decide_every": 50, "slate": 7},
    "champion-set": {"policy": {"name": "rucb", "champion_set": True}},
}


@cache
def undisturbed(changes: str, *, timestamps: bool) -> Output:
    return run(config(**CHANGES[changes]), log_of(3, timestamps=timestamps), [], set())


@pytest.mark.parametrize("timestamps", [True, False], ids=["broker-time", "event-time"])
@pytest.mark.parametrize("changes", CHANGES)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(
    data: st.DataObject, changes: str, timestamps: bool
) -> None:
    log = log_of(3, timestamps=timestamps)
    cuts = sorted(data.draw(st.sets(st.integers(1, RECORDS - 1), max_size=12)))
    restarts = data.draw(st.sets(st.sampled_from(cuts))) if cuts else set()
    found = run(config(**CHANGES[changes]), log, cuts, restarts)
    assert found == undisturbed(changes, timestamps=timestamps)


@pytest.mark.parametrize("decide_every", [1, 20])
@pytest.mark.parametrize("policy", policies.names())
def test_results_of_every_policy_do_not_depend_on_chunks_and_restarts(
    policy: str, decide_every: int
) -> None:
    # Each experiment has some 1,500 duels, more than this horizon.
    needs = [one.name for one in policies.get(policy).declared.values() if one.required]
    settings = config(
        policy={"name": policy, **dict.fromkeys(needs, 1_000)},
        decide_every=decide_every,
        slate=decide_every,
    )
    log = log_of(3, timestamps=True)
    cuts = [1, 2, 40, 700, 701, 1_500, 2_222, 2_990]
    output = run(settings, log, cuts, restarts={2, 700, 2_222})
    assert output == run(settings, log, [], set())
    assert len(output.assignments) > 10


def test_record_by_record_equals_all_at_once() -> None:
    log = log_of(5, timestamps=True)
    one_by_one = run(config(), log, list(range(1, len(log))), set())
    assert one_by_one == run(config(), log, [], set())


FINGERPRINT = """
import sys
from tests.unit.stream.test_fold import fingerprint
sys.stdout.write(fingerprint())
"""


def fingerprint() -> str:
    """The hash of all outputs and the snapshot of a run."""
    output = run(config(), log_of(3, timestamps=True), [1000, 2000], {2000})
    kept = [*output.assignments, *output.dead_letters, *output.entries.values()]
    return sha256(b"\n".join(kept)).hexdigest()


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_results_do_not_depend_on_hash_order(hash_seed: str) -> None:
    root = Path(__file__).parents[3]
    told = subprocess.run(
        [sys.executable, "-c", FINGERPRINT],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout == fingerprint()


def test_an_experiment_added_later_starts_where_it_was_added() -> None:
    """Its earlier records stay dead letters, also when the dedupe window is rebuilt."""
    old = Config.model_validate(
        {"source": {}, "sink": {}, "snapshots": {}, "experiments": {"old": {"arms": ["x", "y"]}}}
    )
    new = Config.model_validate(
        {"source": {}, "sink": {}, "snapshots": {},
         "experiments": {"old": {"arms": ["x", "y"]}, "new": {"arms": ["x", "y"]}}}
    )  # fmt: skip
    log = [Record(0, duel("new", 1, "x", "y", "a"), 0), Record(1, duel("old", 1, "x", "y", "a"), 0)]
    task = PartitionTask(old, LOG, 0)
    task.begin(0)
    task.fold(log)
    entries = dict(task.take_commit().entries)
    for _ in range(2):  # the first restart adds it, the second rebuilds the window with it
        task = PartitionTask(new, LOG, 0, entries)
        assert task.resume_offset is not None
        task.begin(task.resume_offset)
        task.fold(log[task.resume_offset :])
        entries.update(task.take_commit().entries)
    task.fold([Record(2, duel("new", 1, "x", "y", "a"), 0)])
    assert task.experiments["new"].tallies["accepted"] == 1
    assert task.experiments["new"].started_at == 2


def test_a_commit_during_recovery_keeps_the_window() -> None:
    """As when an experiment is added, whose first assignment is committed at once."""
    one = Config.model_validate(
        {"source": {}, "sink": {}, "snapshots": {}, "experiments": {"old": {"arms": ["x", "y"]}}}
    )
    log = [Record(n, duel("old", n, "x", "y", "a"), 1000 + n) for n in range(10)]
    task = PartitionTask(one, LOG, 0)
    task.begin(0)
    task.fold(log)
    entries = dict(task.take_commit().entries)
    two = one.model_copy(update={"experiments": {**one.experiments, "new": one.experiments["old"]}})
    for _ in range(3):  # restarts that crash before they re-read anything
        task = PartitionTask(two, LOG, 0, entries)
        task.begin(task.resume_offset or 0)
        entries.update(task.take_commit().entries)
    assert task.resume_offset == 0
    task.fold(log)
    task.fold([record._replace(offset=10 + record.offset) for record in log])
    assert task.experiments["old"].tallies["duplicate"] == len(log)


def test_a_dead_letter_does_not_advance_stream_time_from_ts() -> None:
    log = [
        Record(0, duel("search", 1, ARMS[0], ARMS[1], "a")),
        Record(1, b'{"ts":9000000000000000,' + duel("search", 2, "nobody", ARMS[1], "a")[1:]),
        Record(2, duel("search", 1, ARMS[0], ARMS[1], "a")),
    ]
    task = PartitionTask(config(), LOG, 0)
    task.begin(0)
    task.fold(log)
    assert task.experiments["search"].tallies["duplicate"] == 1
    assert task.stream_time == 0
