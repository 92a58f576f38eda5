"""An experiment with traffic, whose end is forecast."""

from __future__ import annotations

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.outlook import Outlook
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from streamduel.testing.records import encode
from tests.unit.monitoring.fold import (
    STREAM_TIME,
    Clock,
    commit,
    config,
    duels,
    task,
)

ARMS = ("bm25", "ltr")


class Watched:
    """A task that gets a duel every `gap` seconds, and its metrics."""

    def __init__(self, gap: float = 60.0, **settings: object) -> None:
        self.clock, self.gap = Clock(), gap
        self.metrics = Metrics("files", self.clock)
        self.task: PartitionTask = task(config({"search": ARMS}, **settings))
        self.fold("")

    def fold(self, winners: str, b: str = "ltr") -> None:
        at = self.task.next_offset
        made = duels("search", at, "bm25", b, winners)
        self.task.fold(
            [
                Record(offset, record, STREAM_TIME + round(1000 * self.gap * offset))
                for offset, record in enumerate(made, start=at)
            ]
        )
        self.clock.now += self.gap * len(winners)
        commit(self.metrics, self.task)
        self.metrics.forecasts.update(self.metrics.figures)

    def act(self, action: str, **fields: object) -> None:
        record = {"type": "control", "id": action, "experiment": "search", "action": action}
        self.task.fold([Record(self.task.next_offset, encode(record | fields), STREAM_TIME)])
        commit(self.metrics, self.task)
        self.metrics.forecasts.update(self.metrics.figures)

    def outlook(self) -> Outlook:
        """After all work is done."""
        forecasts = self.metrics.forecasts
        while forecasts.work(0.05) > 0.04:
            pass
        forecasts.update(self.metrics.figures)
        return self.metrics.figures.outlook("search")
