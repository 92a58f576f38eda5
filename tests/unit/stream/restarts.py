"""A partition folded in one run or in several: each but the first restores a snapshot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from streamduel.config import Config
from streamduel.connector import PartitionCommit
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record

LOG = ClickLog("clicks", 1, lambda experiment: 0)


class Output:
    """The visible outputs of a run."""

    def __init__(self) -> None:
        self.assignments: list[bytes] = []
        self.dead_letters: list[bytes] = []
        self.entries: dict[str, bytes] = {}

    def take(self, commit: PartitionCommit) -> None:
        self.assignments += [message.value for message in commit.assignments]
        self.dead_letters += [message.value for message in commit.dead_letters]
        self.entries.update(commit.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def check_saved(task: PartitionTask, output: Output) -> None:
    """The saved state of each experiment, from this commit or an earlier one, is its state."""
    for name, experiment in task.experiments.items():
        saved = json.loads(output.entries[f"experiment/{name}"])
        assert saved["state"] == json.loads(json.dumps(experiment.state())), name


def run(settings: Config, log: Sequence[Record], cuts: Sequence[int], restarts: set[int]) -> Output:
    """Fold a click log cut into batches; at some cuts the process crashes and restarts.

    Between commit and crash a few more records are folded, whose results are lost.
    """
    output = Output()
    task = PartitionTask(settings, LOG, 0)
    task.begin(0)
    for begin, end in pairwise([0, *cuts, len(log)]):
        task.fold(log[begin:end])
        output.take(task.take_commit())
        check_saved(task, output)
        if end in restarts:
            task.fold(log[end : end + 17])
            task = PartitionTask(settings, LOG, 0, output.entries)
            assert task.resume_offset is not None
            task.begin(task.resume_offset)
            task.fold([record for record in log[:end] if record.offset >= task.resume_offset])
    return output
