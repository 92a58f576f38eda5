"""What takes arithmetic is worked out seldom, and never too late."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamduel.monitoring import assessments
from streamduel.monitoring.assessment import CHEAP_ARMS, Assessment
from streamduel.monitoring.assessments import FRESH_SECONDS, MOST_PER_SECOND, Assessments
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.history import History
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.reference import example
from streamduel.monitoring.views import ExperimentView
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, parse, task, value

(SEARCH,) = example().experiments()
ARMS = ("bm25", "ltr", "dense")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The experiments that were assessed, in order."""
    names: list[str] = []
    hold = assessments._hold

    def noted(view: ExperimentView, now: float) -> Any:
        names.append(view.name)
        return hold(view, now)

    monkeypatch.setattr(assessments, "_hold", noted)
    return names


def views(number: int, records: int, **change: Any) -> list[ExperimentView]:
    """Experiments that are alike."""
    fields: dict[str, Any] = {"records": records, "wins": SEARCH.wins * (1 + records), **change}
    return [replace(SEARCH, name=f"e{each}", **fields) for each in range(number)]


def test_a_new_experiment_is_assessed_at_once(made: list[str]) -> None:
    kept = Assessments()
    first = views(3, records=1)
    assert kept.of(first, 100.0) == [view.assessment for view in first]
    assert made == ["e0", "e1", "e2"]


def test_one_that_stands_still_is_assessed_once(made: list[str]) -> None:
    kept = Assessments()
    still = views(3, records=1)
    for now in range(100, 200):
        kept.of(still, float(now))
    assert len(made) == 3


def test_another_life_is_no_standstill_even_with_as_many_records() -> None:
    kept = Assessments()
    kept.of(views(1, records=1), 100.0)
    restored = views(1, records=1, wins=SEARCH.wins * 7)
    assert kept.of(restored, 100.0 + FRESH_SECONDS) == [restored[0].assessment]


def test_one_that_changes_is_assessed_when_it_is_due(made: list[str]) -> None:
    kept = Assessments()
    found: list[Assessment] = []
    for second in range(31):
        found += kept.of(views(1, records=second), 100.0 + second)
    assert len(made) == 1 + 30 // FRESH_SECONDS
    assert found[9] == found[0]
    assert found[10] == views(1, records=10)[0].assessment


def test_the_last_state_is_assessed_soon_after_the_last_change() -> None:
    kept = Assessments()
    kept.of(views(1, records=1), 100.0)
    last = views(1, records=2)
    assert kept.of(last, 100.5) != [last[0].assessment]
    assert kept.of(last, 100.0 + FRESH_SECONDS) == [last[0].assessment]


@pytest.mark.parametrize(
    "change",
    [{"champion": 1}, {"arms": ("x", "y", "z")}, {"seeks": "copeland"}, {"guardrails": None}],
)
def test_one_with_another_champion_or_other_arms_is_assessed_at_once(
    change: dict[str, Any],
) -> None:
    kept = Assessments()
    kept.of(views(1, records=1), 100.0)
    (changed,) = views(1, records=2, **change)
    assert kept.of([changed], 100.5) == [changed.assessment]


def test_after_a_pause_all_that_are_due_are_made(made: list[str]) -> None:
    kept, number = Assessments(), 5 * MOST_PER_SECOND
    kept.of(views(number, records=1), 100.0)
    made.clear()
    kept.of(views(number, records=2), 115.0)
    assert len(made) == number


def test_scrapes_in_quick_succession_share_what_is_allowed(made: list[str]) -> None:
    kept, number = Assessments(), 5 * MOST_PER_SECOND
    still = views(number, records=0)
    kept.of(still, 100.0)
    kept.of(still, 109.5)
    made.clear()
    counts: list[int] = []
    for step in range(1, 12):
        kept.of(views(number, records=step), 109.5 + step / 2)
        counts.append(len(made) - sum(counts))
    assert max(counts) == counts[0] == MOST_PER_SECOND
    assert set(counts[1:-2]) == {MOST_PER_SECOND // 2}
    assert len(made) == len(set(made)) == number, "all had their turn, and none had two"


def test_what_the_history_has_made_is_not_made_again(made: list[str]) -> None:
    metrics, kept = Metrics("kafka", Clock()), Assessments()
    history = History(assessments=kept)
    watched = task(config({"search": ARMS}))
    for step in range(3):
        fold(watched, *duels("search", 10 * step, "ltr", "bm25", "aaab"))
        commit(metrics, watched)
        figures = replace(metrics.figures, now=100.0 + step * FRESH_SECONDS)
        list(history.look(figures))
        (view,) = figures.experiments()
        assert kept.of([view], figures.now + 0.5) == [view.assessment]
    assert made == ["search"] * 3


def test_what_the_history_has_made_of_an_older_state_changes_nothing() -> None:
    kept, (older,), (newer,) = Assessments(), views(1, records=1), views(1, records=2)
    kept.of([newer], 100.0)
    kept.keep(older, 99.5)
    assert kept.of([newer], 101.0) == [newer.assessment]


def test_what_is_gone_takes_no_memory() -> None:
    kept = Assessments()
    kept.of(views(3, records=1), 100.0)
    kept.of([], 101.0)
    assert not kept._held


def test_on_the_page_counters_are_fresh_and_regret_follows() -> None:
    clock = Clock()
    metrics = Metrics("kafka", clock)
    page = Exposition(metrics)

    def figure(name: str, **labels: str) -> float:
        return value(parse(page.page("")[0].decode()), name, experiment="search", **labels)

    watched = task(config({"search": ARMS}))
    fold(watched, *duels("search", 0, "ltr", "bm25", "aaab"))
    commit(metrics, watched)
    regret = {"kind": "strong", "bound": "estimate"}
    assert (figure("duels_total"), figure("regret", **regret)) == (4, 1.0)
    fold(watched, *duels("search", 10, "ltr", "bm25", "aaaabbaa"))
    commit(metrics, watched)
    assert (figure("duels_total"), figure("regret", **regret)) == (12, 1.0)
    clock.now += FRESH_SECONDS
    assert (figure("duels_total"), figure("regret", **regret)) == (12, 3.0)


class TestManyArms:
    """What takes seconds is never worked out by whoever asks."""

    ARMS = tuple(f"arm{number}" for number in range(CHEAP_ARMS + 1))

    class Watched:
        def __init__(self, arms: tuple[str, ...]) -> None:
            self.metrics, self.history = Metrics("kafka", Clock()), History()
            self.exposition = Exposition(self.metrics)
            self.task = task(config({"search": arms}))

        def fold(self, *records: bytes) -> ExperimentView:
            fold(self.task, *records)
            commit(self.metrics, self.task)
            (view,) = self.metrics.figures.experiments()
            return view

        def look(self) -> None:
            list(self.history.look(self.metrics.figures))

        def figures(self) -> tuple[float, float, float]:
            """Regret, confidence, and whether there may be a Condorcet winner."""
            samples = parse(self.exposition.page("")[0].decode())
            labels = {"experiment": "search"}
            return (
                value(samples, "regret", kind="strong", bound="upper", **labels),
                value(samples, "champion_confidence", **labels),
                value(samples, "condorcet_winner_possible", **labels),
            )

    def test_is_unknown_until_it_is_worked_out_elsewhere(self) -> None:
        watched = self.Watched(self.ARMS)
        view = watched.fold(*duels("search", 0, "arm0", "arm1", "aab"))
        watched.exposition.page("text/plain;version=1.0.0;escaping=dots")  # from the registry
        regret, confidence, possible = watched.figures()
        assert np.isnan([regret, possible]).all()
        assert confidence == view.confidence, "which costs next to nothing"
        assert "regret_bound" not in vars(view)
        watched.look()
        assert watched.figures() == (
            view.regret_bound["strong"], view.confidence, view.condorcet_winner_possible,
        )  # fmt: skip

    def test_the_newest_is_shown_until_there_is_a_newer_one(self) -> None:
        watched = self.Watched(self.ARMS)
        first = watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
        watched.look()
        second = watched.fold(*duels("search", 10, "arm0", "arm1", "a" * 5))
        assert second.champion == first.champion
        assert watched.figures()[0] == first.regret_bound["strong"]
        watched.look()
        assert watched.figures()[0] == second.regret_bound["strong"]

    def test_that_of_another_champion_is_not_shown(self) -> None:
        watched = self.Watched(self.ARMS)
        watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
        watched.look()
        (view,) = watched.metrics.figures.experiments()
        assert view.assessment.regret == view.regret
        other = replace(view, champion=1 - view.champion)
        assert np.isnan(list(other.assessment.regret.values())).all()

    def test_that_of_before_a_reset_is_not_shown(self) -> None:
        watched = self.Watched(self.ARMS)
        before = watched.fold(*duels("search", 0, "arm0", "arm1", "a" * 5))
        watched.look()
        reset = watched.fold(b'{"type":"control","id":"c","experiment":"search","action":"reset"}')
        same = replace(reset, champion=before.champion)
        assert np.isnan(list(same.assessment.regret.values())).all()
