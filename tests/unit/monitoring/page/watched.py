"""One experiment with its monitoring, and records for it."""

from __future__ import annotations

from typing import Any

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.history import History
from streamduel.monitoring.page.checks import Check
from streamduel.monitoring.page.experiment import ExperimentPage, experiment_page
from streamduel.monitoring.page.wording import THIN
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import ExperimentView
from streamduel.testing import encode
from tests.unit.monitoring.fold import STREAM_TIME, Clock, commit, config, fold, task

ARMS = ("bm25", "ltr", "dense")
NOW = STREAM_TIME / 1000


class Watched:
    """One experiment with its monitoring."""

    def __init__(self, arms: tuple[str, ...] = ARMS, **settings: Any) -> None:
        self.clock = Clock()
        self.metrics, self.history = Metrics("files", self.clock), History(lambda: NOW)
        self.metrics.connection(source=True)
        self.task = task(config({"search": arms}, **settings))
        self.dead_letters: list[RecentDeadLetter] = []
        self.commit()

    def commit(self) -> None:
        commit(self.metrics, self.task)
        list(self.history.update(self.metrics.figures))

    def fold(self, *records: bytes) -> ExperimentPage:
        fold(self.task, *records)
        self.commit()
        return self.page()

    @property
    def view(self) -> ExperimentView:
        (view,) = self.metrics.figures.experiments()
        return view

    def page(self, now: float = NOW) -> ExperimentPage:
        figures = self.metrics.figures
        return experiment_page(figures, self.view, 0, self.history, self.dead_letters, now)

    def check(self, title: str) -> Check:
        (found,) = [each for each in self.page().checks if title in each.title]
        return found


def counted(a: str, b: str, wins_a: int, wins_b: int, ties: int = 0) -> bytes:
    return encode(
        {"type": "duels", "id": f"{a}{b}{wins_a}", "experiment": "search", "a": a, "b": b,
         "wins_a": wins_a, "wins_b": wins_b, "ties": ties}
    )  # fmt: skip


def control(action: str, **fields: str) -> bytes:
    return encode(
        {"type": "control", "experiment": "search", "id": action, "action": action, **fields}
    )


def plain(text: str) -> str:
    return text.replace(THIN, " ")
