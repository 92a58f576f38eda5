"""What streamduel learns from the job's counts is what it learns from the raw records alone."""

from __future__ import annotations

from typing import Any

import pytest

from streamduel.config import Config
from streamduel.testing import Record
from streamduel_spark.decoding import RawRecord
from tests.raw_log import ARMS, DEDUPE_WINDOW_MS, EXPERIMENTS, JOIN_WINDOW_MS, raw_log
from tests.unit.spark.cluster import Job, spark
from tests.unit.stream.folding import Partition

LOG = raw_log(5, 6000)


def config(**settings: Any) -> Config:
    experiments = {
        name: {"arms": ARMS, "join_window_ms": JOIN_WINDOW_MS, "decide_every": 100, **own}
        for name, own in EXPERIMENTS.items()
    }
    return Config.model_validate({
        "source": {}, "sink": {}, "snapshots": {}, "experiments": experiments,
        "dedupe": {"window_ms": DEDUPE_WINDOW_MS}, "spark": spark(**settings),
    })  # fmt: skip


def learned(partition: Partition) -> dict[str, Any]:
    found = {}
    for name, experiment in partition.task.experiments.items():
        experiment.buffer.learn()
        state = experiment.state()
        found[name] = (
            experiment.policy.wins.tolist(), state.get("pair_ties"), state.get("segments"),
        )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    partition = Partition(config())
    partition._fold([
        Record(offset, it.value, it.timestamp, it.experiment.encode())
        for offset, it in enumerate(LOG)
    ])  # fmt: skip
    return learned(partition)


@pytest.mark.parametrize("batches", [1, 2, 40])
@pytest.mark.parametrize("tasks", [1, 3])
def test_however_the_log_is_cut(alone: dict[str, Any], batches: int, tasks: int) -> None:
    job, partition = Job(config()), Partition(config())
    records = [
        RawRecord(0, offset, it.timestamp, it.experiment.encode(), it.value)
        for offset, it in enumerate(LOG)
    ]
    size = -(-len(records) // batches)
    cuts = [records[start : start + size] for start in range(0, len(records), size)]
    for cut in [*cuts, [], []]:
        written = job.batch(cut, tasks)
        partition.fold(*(it.value for it in written.messages if not it.topic))
    assert learned(partition) == alone
    assert any(any(row) for row in alone["docs"][0])
