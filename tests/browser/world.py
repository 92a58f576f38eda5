"""A monitoring server with a real fold, and a ranker service that follows assignments."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from streamduel.config import Config, LoadedConfig, MonitoringSettings
from streamduel.monitoring import Monitoring
from streamduel.records import Assignment
from streamduel.simulation.click_log import START_MS, write_click_log
from streamduel.simulation.matrices import ARXIV_RANKERS
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.unit.monitoring.fold import Clock, task

ARMS: Final = ("bm25", "bm25-rm3", "dense-v1", "ltr-v1", "ltr-v2", "ltr-v3")

SEARCH: Final[Mapping[str, Any]] = {
    "arms": ARMS,
    "policy": {"name": "rucb"},
    "seed": 7,
    "decide_every": 50,
    "slate": 10,
    "guardrails": {
        "control_arm": "bm25",
        "min_share": 0.05,
        "fallback": {"arm": "bm25", "idle_ms": 600_000},
    },
}
"""As in configs/local.yaml, with a hold-out and a fallback."""

PAIRS: Final = 15
"""Of six rankers; a click log shows each of them equally often."""

COMMIT_RECORDS: Final = 60
"""Records from one commit to the next: half a second of a busy search engine."""


class World:
    """Several experiments of one partition, and a monitoring server that shows them.

    Args:
        experiments: their settings by name; `search` is fed by the click log.
    """

    def __init__(self, experiments: Mapping[str, Mapping[str, Any]]) -> None:
        section = {"connector": "files", "path": "nowhere"}
        self.config = Config.model_validate(
            {"source": section, "sink": section, "snapshots": section, "experiments": experiments}
        )
        self.task: PartitionTask = task(self.config)
        self.clock = Clock()
        self.monitoring = Monitoring(
            MonitoringSettings(port=0),
            cast("LoadedConfig", SimpleNamespace(config=self.config)),
            self.clock,
            lambda: max(START_MS, self.task.stream_time) / 1000,
        )
        host, port = self.monitoring.start()
        self.url = f"http://{host}:{port}"
        self.monitoring.observer.connection(source=True)
        self._rng = random.Random(7)
        self.commit()

    def close(self) -> None:
        self.monitoring.stop()

    def commit(self) -> None:
        """What the runner does after a commit, and the history thread soon after."""
        commits = [self.task.take_commit()]
        for observer in self.monitoring.observers:
            observer.turned()
            observer.committed([self.task], 0.02)
            observer.published(commits)
            observer.lagging({self.task.partition: 0})
        for _ in self.monitoring.history.update(self.monitoring.observer.figures):
            pass

    def fold(self, records: Sequence[bytes], ts: int | None = None) -> None:
        """Fold the next records."""
        at = self.task.next_offset
        stamp = self.task.stream_time + 50 if ts is None else ts
        self.task.fold([Record(at + n, value, stamp) for n, value in enumerate(records)])
        self.clock.now += 0.05 * len(records)

    def serve(self, log: Iterator[bytes], commits: int) -> None:
        """Serve users by the assignments of the experiment `search`, for that many commits."""
        for _ in range(commits):
            folded = 0
            while folded < COMMIT_RECORDS:
                line = next(log)
                pair, ts = _pair(line)
                alone = self._alone(ts)
                if alone is not None:
                    self.fold([alone], ts)
                elif pair is None or pair in self._wanted():
                    self.fold([line], ts)
                else:
                    continue  # a pair that is not assigned, in a click log of all pairs
                folded += 1
            self.commit()

    def _assignment(self) -> Assignment:
        assignment = self.task.experiments["search"].decisions.assignment
        assert assignment is not None
        return assignment

    def _wanted(self) -> set[frozenset[str] | None]:
        """The assigned pairs, unordered."""
        return {frozenset((pair.a, pair.b)) for pair in self._assignment().pairs}

    def _alone(self, ts: int) -> bytes | None:
        """The record of a ranker served alone; None if two are interleaved."""
        alone = [pair for pair in self._assignment().pairs if pair.a == pair.b]
        shares = [pair.share / PAIRS for pair in alone]  # as rare as the records of a pair
        if self._rng.random() >= sum(shares):
            return None
        arm = self._rng.choices(alone, shares)[0].a
        return encode(
            {"type": "duel", "id": f"alone-{self._rng.getrandbits(60)}", "experiment": "search",
             "a": arm, "b": arm, "winner": None, "ts": ts}
        )  # fmt: skip


def click_log(folder: Path, records: int) -> Iterator[bytes]:
    """The records of a click log whose best ranker is `ltr-v3`."""
    path = folder / "clicks.jsonl"
    write_click_log(path, records, seed=7, arms=ARXIV_RANKERS)
    return iter(path.read_bytes().splitlines())


def _pair(line: bytes) -> tuple[frozenset[str] | None, int]:
    """The pair and time of an impression; no pair for an invalid line."""
    try:
        record = json.loads(line)
        return frozenset((record["a"], record["b"])), record["ts"]
    except (ValueError, TypeError, KeyError):
        return None, 0
