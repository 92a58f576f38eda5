"""Past regret and confidence: bounded, evenly spread, and cheap."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from streamduel.monitoring import history
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History, HistoryThread, Point, PointSeries
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND
from streamduel.policies import TopTwo
from streamduel.testing import encode
from tests.unit.client.bed import eventually
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, task

ARMS = ("bm25", "ltr", "dense")


def point(duels: float) -> Point:
    return Point(1000 + duels, duels, 0.5, duels / 10, duels / 5)


def noted(series: PointSeries) -> list[float]:
    return [each.duels for each in series.points()]


class TestPointSeries:
    @given(st.integers(0, 3000), st.integers(2, 50))
    @settings(deadline=None, max_examples=60)
    def test_is_bounded_and_keeps_the_first_and_the_last(self, count: int, most: int) -> None:
        series = PointSeries(most)
        for number in range(count):
            series.add(point(number))
        kept = noted(series)
        assert len(kept) <= most
        if count:
            assert (kept[0], kept[-1]) == (0, count - 1)
            assert len(kept) >= min(count, most // 2)

    def test_is_spread_evenly(self) -> None:
        series = PointSeries()
        for number in range(10_000):
            series.add(point(number))
        kept = noted(series)
        gaps = {second - first for first, second in pairwise(kept[:-1])}
        assert gaps == {64}

    def test_returns_points_unchanged(self) -> None:
        series = PointSeries()
        for number in range(5):
            series.add(point(number))
        assert series.points() == [point(number) for number in range(5)]

    def test_a_reset_clears_the_series(self) -> None:
        series = PointSeries()
        for number in (0, 50, 100, 0, 7):
            series.add(point(number))
        assert noted(series) == [0, 7]


class TestHistory:
    def test_adds_points_of_changed_experiments(self) -> None:
        metrics, past = Metrics("files"), History(Clock())
        watched = task(config({"search": ARMS, "ads": ("x", "y")}))
        for number in range(4):
            commit(metrics, watched)
            list(past.update(metrics.figures))
            fold(watched, *duels("search", 10 * number, "bm25", "ltr", "bbab"))
        assert [int(each.duels) for each in past.points("search")] == [0, 4, 8, 12]
        assert [int(each.duels) for each in past.points("ads")] == [0]
        assert past.points("unknown") == []
        assert past.newest("unknown") is None
        view = next(each for each in metrics.figures.experiments() if each.name == "search")
        assert past.newest("search") == Point(
            1000, 12, view.confidence, view.regret["condorcet"], view.regret_bound["condorcet"],
            view.verdict.progress,
        )  # fmt: skip

    def test_unchanged_experiments_cost_nothing(self) -> None:
        metrics, past = Metrics("files"), History()
        commit(metrics, task(config({"search": ARMS})))
        assert len(list(past.update(metrics.figures))) == 1
        assert list(past.update(metrics.figures)) == []

    def test_the_kind_of_regret_follows_the_winner_sought(self) -> None:
        metrics, past = Metrics("files"), History()
        watched = task(config({"search": ARMS}, policy={"name": "ccb"}))
        fold(watched, *duels("search", 0, "bm25", "ltr", "bbbbb"))
        commit(metrics, watched)
        (view,) = metrics.figures.experiments()
        (now,) = past.up_to(view)
        assert now.regret_bound == view.regret_bound["copeland"] != view.regret_bound["condorcet"]

    def test_includes_the_present_view_without_an_update(self) -> None:
        metrics, past = Metrics("files"), History()
        watched = task(config({"search": ARMS}))
        commit(metrics, watched)
        list(past.update(metrics.figures))
        fold(watched, *duels("search", 0, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        (view,) = metrics.figures.experiments()
        assert [int(each.duels) for each in past.up_to(view)] == [0, 2]
        list(past.update(metrics.figures))
        assert [int(each.duels) for each in past.up_to(view)] == [0, 2], "not twice"

    def test_many_arms_are_not_computed_on_demand(self) -> None:
        metrics, past = Metrics("files"), History()
        arms = [f"arm{number}" for number in range(MAX_ARMS_ON_DEMAND + 1)]
        commit(metrics, task(config({"search": arms})))
        (view,) = metrics.figures.experiments()
        assert past.up_to(view) == []
        assert "regret_bound" not in vars(view)
        list(past.update(metrics.figures))
        assert len(past.up_to(view)) == 1

    def test_an_update_of_a_newer_view_is_no_reset(self) -> None:
        metrics, past = Metrics("files"), History()
        watched = task(config({"search": ARMS}))
        fold(watched, *duels("search", 0, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        (asked,) = metrics.figures.experiments()
        list(past.update(metrics.figures))
        fold(watched, *duels("search", 10, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        list(past.update(metrics.figures))
        assert [int(each.duels) for each in past.up_to(asked)] == [2, 4]

    def test_points_have_the_time_of_their_figures(self) -> None:
        clock, metrics = Clock(), Metrics("files")
        past = History(clock)
        commit(metrics, task(config({"search": ARMS, "ads": ARMS})))
        for _ in past.update(metrics.figures):
            clock.now += 300  # to rest from a large experiment
        assert {past.points(name)[0].at for name in ("search", "ads")} == {1000.0}

    def test_a_restarted_experiment_is_updated_even_with_as_many_records(self) -> None:
        past = History()
        for winner in "ab":
            metrics, watched = Metrics("files"), task(config({"search": ARMS}))
            fold(watched, *duels("search", 0, "bm25", "ltr", winner))
            commit(metrics, watched)
            assert len(list(past.update(metrics.figures))) == 1

    def test_a_reset_clears_the_points_at_once(self) -> None:
        metrics, past = Metrics("files"), History()
        watched = task(config({"search": ARMS}))
        fold(watched, *duels("search", 0, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        list(past.update(metrics.figures))
        fold(watched, b'{"type":"control","id":"c","experiment":"search","action":"reset"}')
        commit(metrics, watched)
        (view,) = metrics.figures.experiments()
        assert [int(each.duels) for each in past.up_to(view)] == [0]

    @pytest.mark.parametrize(("policy", "kept"), [("double_thompson", [4]), ("rucb", [2, 4])])
    def test_points_have_one_kind_of_regret(self, policy: str, kept: list[int]) -> None:
        metrics, past = Metrics("files"), History()
        watched = task(config({"search": ARMS}))
        fold(watched, *duels("search", 0, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        list(past.update(metrics.figures))
        apply = {"type": "control", "id": "c", "experiment": "search", "action": "apply"}
        fold(watched, encode({**apply, "settings": {"policy": {"name": policy}}}))
        fold(watched, *duels("search", 2, "bm25", "ltr", "bb"))
        commit(metrics, watched)
        (view,) = metrics.figures.experiments()
        assert [int(each.duels) for each in past.up_to(view)] == kept, "at once"
        list(past.update(metrics.figures))
        assert [int(each.duels) for each in past.points("search")] == kept


class TestHistoryThread:
    def test_updates_until_it_is_stopped(self) -> None:
        metrics, past = Metrics("files"), History()
        commit(metrics, task(config({"search": ARMS})))
        thread = HistoryThread(past, lambda: metrics.figures)
        thread.start()
        eventually(lambda: past.newest("search") is not None)
        thread.stop()
        eventually(lambda: "history" not in {thread.name for thread in threading.enumerate()})

    def test_continues_after_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a policy, for instance: a forecast simulates it in this thread."""
        monkeypatch.setattr(history, "INTERVAL_SECONDS", 0.05)
        monkeypatch.setattr(history, "FORECAST_SECONDS", 0.001)
        monkeypatch.setattr(history, "FAILED_SECONDS", 0.01)
        watched = task(config({"search": ARMS}))
        fold(watched, *duels("search", 0, "bm25", "ltr", "ab" * 40))
        metrics, past = Metrics("files"), History()
        commit(metrics, watched)

        def failing(*_: object) -> int:
            return 1 // 0

        monkeypatch.setattr(TopTwo, "propose", failing)
        thread = HistoryThread(past, lambda: metrics.figures, metrics.forecasts)
        with capture_logs() as lines:
            thread.start()
            eventually(lambda: past.newest("search") is not None)
            eventually(lambda: metrics.figures.outlook("search").why_not == "policy")
        thread.stop()
        assert {(line["event"], line["seconds"]) for line in lines} == {("figures delayed", 0.01)}

    def test_pauses_once_for_several_small_points(self) -> None:
        small = 0.4 * history.WORK_SECONDS
        waits: list[float | None] = []

        class Small(History):
            def update(self, figures: Figures) -> Iterator[float]:
                yield from [small] * 4

        class Stopped(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                waits.append(timeout)
                return len(waits) == 5

        metrics = Metrics("files")
        thread = HistoryThread(Small(), lambda: metrics.figures)
        thread._stopped = Stopped()
        thread._run()
        rest = pytest.approx(3 * small * history.PAUSE)
        look = history.INTERVAL_SECONDS
        assert waits == [look, rest, look, rest, look]

    def test_pauses_far_longer_than_it_works(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(history, "INTERVAL_SECONDS", 0.01)
        came: list[float] = []

        class Slow(History):
            def update(self, figures: Figures) -> Iterator[float]:
                for _ in range(4):
                    came.append(time.perf_counter())
                    yield 0.004

        metrics = Metrics("files")
        thread = HistoryThread(Slow(), lambda: metrics.figures)
        thread.start()
        eventually(lambda: len(came) >= 4)
        thread.stop()
        gaps = [second - first for first, second in pairwise(came[:4])]
        assert min(gaps) >= 0.9 * history.PAUSE * 0.004
