"""One partition folded by hand, and its outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from streamduel.config import Config
from streamduel.connector import PartitionCommit
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode

ARMS = ["bm25", "ltr-v1", "ltr-v2"]

DUEL: dict[str, Any] = {
    "type": "duel", "id": "1", "experiment": "search", "a": "bm25", "b": "ltr-v1", "winner": "a",
}  # fmt: skip
DUELS: dict[str, Any] = {
    "type": "duels", "id": "1", "experiment": "search", "a": "bm25", "b": "ltr-v1",
    "wins_a": 2, "wins_b": 1, "ties": 0,
}  # fmt: skip
INTERLEAVING: dict[str, Any] = {
    "type": "interleaving", "id": "1", "experiment": "search", "a": "bm25", "b": "ltr-v1",
    "teams": ["a", "b", None], "clicks": [0],
}  # fmt: skip
CONTROL: dict[str, Any] = {
    "type": "control", "id": "c-1", "experiment": "search", "action": "pause", "arm": None,
}  # fmt: skip


def text(record: Mapping[str, Any], **changes: Any) -> bytes:
    """A record's JSON, with some fields changed."""
    return encode({**record, **changes})


def control(action: str, arm: str | None = None, number: int | str = 0, **fields: Any) -> bytes:
    return text(CONTROL, id=f"{action}-{arm}-{number}", action=action, arm=arm, **fields)


def bulk(a: str, b: str, wins_a: int, wins_b: int = 0, number: int = 0) -> bytes:
    """A number of duels of one pair."""
    return text(DUELS, id=f"{a}-{b}-{number}", a=a, b=b, wins_a=wins_a, wins_b=wins_b)


def config(*, search: Mapping[str, Any] | None = None, **parts: Any) -> Config:
    experiments = {
        "search": {"arms": ARMS, "seed": 7, **(search or {})},
        "ads": {"arms": ["x", "y"]},
    }
    return Config.model_validate(
        {"source": {}, "sink": {}, "snapshots": {}, "experiments": experiments, **parts}
    )


class Partition:
    """A running partition; each value folded takes the next offset and millisecond.

    Attributes:
        made_of: its configuration, its number and the homes of experiments.
        entries: the newest snapshot.
        log: all records folded.
    """

    def __init__(
        self,
        settings: Config | None = None,
        number: int = 0,
        home: Callable[[str], int] = lambda experiment: 0,
        entries: Mapping[str, bytes] | None = None,
    ) -> None:
        self.made_of = settings or config(), number, home
        self.task = PartitionTask(
            settings or config(), ClickLog("clicks", 2, home), number, entries
        )
        self.task.begin(self.task.resume_offset or 0)
        self.begun = self.task.take_commit()
        self.entries = {**(entries or {}), **self.begun.entries}
        self.log: list[Record] = []

    def fold(self, *values: bytes | None, key: bytes | None = None) -> PartitionCommit:
        first = self.task.next_offset
        return self._fold([Record(at, value, at, key) for at, value in enumerate(values, first)])

    def fold_at(self, timestamp: int | None, *values: bytes) -> PartitionCommit:
        """Fold values that all have one broker's timestamp, or none."""
        first = self.task.next_offset
        return self._fold([Record(at, value, timestamp) for at, value in enumerate(values, first)])

    def _fold(self, records: list[Record]) -> PartitionCommit:
        self.log += records
        self.task.fold(records)
        commit = self.task.take_commit()
        self.entries.update(commit.entries)
        return commit

    def restarted(self) -> Partition:
        """The partition after a restart, from the last commit on."""
        settings, number, home = self.made_of
        other = Partition(settings, number, home, dict(self.entries))
        assert other.task.resume_offset is not None
        other.task.fold(self.log[other.task.resume_offset :])
        other.log = list(self.log)
        return other

    def tallies(self, experiment: str = "search") -> dict[str, int]:
        return self.task.experiments[experiment].tallies

    def wins(self) -> list[list[float]]:
        counts: list[list[float]] = self.task.experiments["search"].policy.wins.tolist()
        return counts

    def duels(self) -> int:
        return self.task.experiments["search"].policy.duels

    def knows(self) -> dict[str, Any]:
        """The hard states of the experiments, without the number of dead letters."""
        states = {name: it.state() for name, it in self.task.experiments.items()}
        for state in states.values():
            del state["tallies"]["dead_letter"]
        return states


def letters(commit: PartitionCommit) -> list[dict[str, Any]]:
    """The dead letters of a commit."""
    return [json.loads(message.value) for message in commit.dead_letters]


def assignments(commit: PartitionCommit) -> list[dict[str, Any]]:
    """The assignments of a commit."""
    return [json.loads(message.value) for message in commit.assignments]


def searched(commit: PartitionCommit) -> list[dict[str, Any]]:
    """The assignments of "search" in a commit."""
    return [it for it in assignments(commit) if it["experiment"] == "search"]


def last(commit: PartitionCommit) -> dict[str, Any]:
    """The newest assignment of "search" in a commit."""
    return searched(commit)[-1]


def search(**settings: Any) -> Partition:
    """A partition whose experiment "search" has these settings."""
    return Partition(config(search=settings))


def status(partition: Partition) -> str:
    return partition.task.experiments["search"].decisions.status
