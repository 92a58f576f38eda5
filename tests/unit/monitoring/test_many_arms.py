"""Experiments of many arms: figures that take seconds are never computed during a request."""

from dataclasses import replace

import numpy as np

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.history import History
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND, ExperimentView
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, parse, task, value

ARMS = tuple(f"arm{number}" for number in range(MAX_ARMS_ON_DEMAND + 1))


class Watched:
    def __init__(self, arms: tuple[str, ...]) -> None:
        self.metrics, self.history = Metrics("kafka", Clock()), History()
        self.exposition = Exposition(self.metrics.registry)
        self.task = task(config({"search": arms}))

    def fold(self, *records: bytes) -> ExperimentView:
        fold(self.task, *records)
        commit(self.metrics, self.task)
        (view,) = self.metrics.figures.experiments()
        return view

    def look(self) -> None:
        list(self.history.update(self.metrics.figures))

    def figures(self) -> tuple[float, float, float]:
        """Regret, confidence, and whether there may be a Condorcet winner."""
        samples = parse(self.exposition.page("")[0].decode())
        labels = {"experiment": "search"}
        return (
            value(samples, "regret", kind="strong", bound="upper", **labels),
            value(samples, "champion_confidence", **labels),
            value(samples, "condorcet_winner_possible", **labels),
        )


def test_unknown_until_the_history_has_computed_it() -> None:
    watched = Watched(ARMS)
    view = watched.fold(*duels("search", 0, "arm0", "arm1", "aab"))
    regret, confidence, possible = watched.figures()
    assert np.isnan([regret, possible]).all()
    assert confidence == view.confidence, "which is cheap"
    assert "regret_bound" not in vars(view)
    watched.look()
    assert watched.figures() == (
        view.regret_bound["strong"], view.confidence, view.condorcet_winner_possible,
    )  # fmt: skip


def test_the_newest_assessment_is_shown() -> None:
    watched = Watched(ARMS)
    first = watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
    watched.look()
    second = watched.fold(*duels("search", 10, "arm0", "arm1", "a" * 5))
    assert second.champion == first.champion
    assert watched.figures()[0] == first.regret_bound["strong"]
    watched.look()
    assert watched.figures()[0] == second.regret_bound["strong"]


def test_the_assessment_of_another_champion_is_not_shown() -> None:
    watched = Watched(ARMS)
    watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
    watched.look()
    (view,) = watched.metrics.figures.experiments()
    assert view.assessment.regret == view.regret
    other = replace(view, champion=1 - view.champion)
    assert np.isnan(list(other.assessment.regret.values())).all()


def test_the_assessment_before_a_reset_is_not_shown() -> None:
    watched = Watched(ARMS)
    before = watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
    watched.look()
    reset = watched.fold(b'{"type":"control","id":"c","experiment":"search","action":"reset"}')
    same = replace(reset, champion=before.champion)
    assert np.isnan(list(same.assessment.regret.values())).all()
