"""Assignments that are published elsewhere: the new place gets the present ones, unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from streamduel.config import Config
from streamduel.connector import Message, PartitionCommit, Snapshot
from streamduel.records import Assignment
from streamduel.stream.replay import replay
from streamduel.testing import Broker, MemoryOutlet, duel, encode, run

EXPERIMENTS: dict[str, dict[str, Any]] = {
    "finished": {"arms": ["x", "y"], "stop": {"confidence": 0.9}, "decide_every": 5},
    "frozen": {"guardrails": {"freeze_pair": ["x", "y"]}},
    "paused": {},
    "slow": {"decide_every": 50},
    "running": {"policy": {"name": "rucb"}, "decide_every": 10},
}
CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "experiments": {
            name: {"arms": ["x", "y", "z"], **settings} for name, settings in EXPERIMENTS.items()
        },
    }
)  # fmt: skip


@dataclass
class Topics(Broker):
    """A broker with several topics for assignments, of which the service writes to one."""

    topic: str = "A"
    written: str = "A"  # the topic of the last commit
    topics: dict[str, list[Message]] = field(default_factory=dict)

    def outlet(self) -> MemoryOutlet:
        self.assignments = self.topics.setdefault(self.topic, [])
        return Outlet(self)


class Outlet(MemoryOutlet):
    compacted = True
    _broker: Topics

    def load(self, partition: int) -> Snapshot | None:
        found = super().load(partition)
        moved = self._broker.written != self._broker.topic
        return None if found is None else replace(found, moved=moved)

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        super().finish(commits)
        self._broker.written = self._broker.topic


def duels(begin: int, end: int) -> list[bytes]:
    return [duel(name, n, "x", "y", "a") for n in range(begin, end) for name in EXPERIMENTS]


def newest(messages: Sequence[Message]) -> dict[str, bytes]:
    return {
        message.content.experiment: message.value
        for message in messages
        if isinstance(message.content, Assignment)
    }


@pytest.mark.parametrize("refused", [False, True])
def test_a_new_topic_gets_every_present_assignment(refused: bool) -> None:
    paused = encode({"type": "control", "id": "c", "experiment": "paused", "action": "pause"})
    broker = Topics([*duels(0, 60), paused, *duels(60, 120)])
    run(CONFIG, broker)
    before = newest(broker.topics["A"])
    assert before.keys() == EXPERIMENTS.keys()
    assert msgspec.json.decode(before["finished"])["status"] == "finished"

    broker.topic, broker.fence_next = "B", refused
    run(CONFIG, broker)
    assert newest(broker.topics["B"]) == before
    assert len(broker.topics["B"]) == len(EXPERIMENTS)
    run(CONFIG, broker)  # once, not at every start
    assert len(broker.topics["B"]) == len(EXPERIMENTS)
    broker.log = [*broker.log, *duels(120, 140)]
    run(CONFIG, broker)
    assert replay(CONFIG, broker.source(), broker.outlet()).difference is None

    broker.topic = "A"
    run(CONFIG, broker)
    present = newest(broker.topics["A"])
    assert present == newest(broker.topics["B"])
    assert present["finished"] == before["finished"]
    assert present["running"] != before["running"]
    assert replay(CONFIG, broker.source(), broker.outlet()).difference is None
