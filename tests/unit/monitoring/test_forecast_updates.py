"""When forecasts are made, and made again, within a share of a core."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from streamduel.errors import PolicyError
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.forecasts import Forecasts
from streamduel.monitoring.history import History, HistoryThread
from tests.unit.client.bed import eventually
from tests.unit.monitoring.forecasted import Watched

DAY = 86_400.0


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": {"name": "double_thompson"}},
        {"stop": {"confidence": 0.99}},
        {"stop": {"min_duels": 500}},
    ],
)
def test_other_settings_need_another_forecast(settings: dict[str, object]) -> None:
    watched = Watched(policy={"name": "ccb"})
    for _ in range(2):
        watched.fold("babab" * 10)
    assert watched.outlook().why_not is None
    watched.act("apply", settings=settings)
    assert watched.metrics.figures.outlook("search").why_not == "computing"
    assert watched.outlook().why_not != "computing"


@pytest.mark.parametrize(
    ("former", "before", "ties", "after", "least", "most"),
    [
        ("half", ("bbaba" + "t" * 15) * 20, "drop", "bbaba" * 4, 0.02, 0.15),
        ("drop", "bbaba" * 20, "half", "bbaba" + "t" * 15, 2.0, 10.0),
    ],
)
def test_ties_are_as_frequent_as_since_a_change(
    former: str, before: str, ties: str, after: str, least: float, most: float
) -> None:
    """With the ties of all duels it would be a quarter of a day, and one day."""
    watched = Watched(ties=former)
    watched.fold(before[:20])
    watched.fold(before[20:])
    assert watched.outlook().why_not is None
    watched.act("apply", settings={"ties": ties})
    assert watched.outlook().why_not == "few_duels"
    watched.metrics = Metrics("files", watched.clock)  # as after a restart
    for _ in range(10):
        watched.fold(after)
        assert watched.outlook().why_not == "few_duels"
    watched.fold(after)  # the 200th duel since the first sample
    assert watched.metrics.figures.outlook("search").why_not == "computing"
    assert least * DAY < watched.outlook().median < most * DAY


def test_another_policy_may_be_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> Iterator[None]:
        yield
        raise PolicyError("parameters")

    monkeypatch.setattr("streamduel.monitoring.forecasts.forecast", refused)
    watched = Watched(policy={"name": "ccb"})
    watched.fold("babab" * 10)
    assert watched.outlook().why_not == "policy"
    watched.act("apply", settings={"policy": {"name": "double_thompson"}})
    assert watched.metrics.figures.outlook("search").why_not == "computing"


def test_a_forecast_is_made_again_only_after_more_duels() -> None:
    watched = Watched()
    for _ in range(2):
        watched.fold("babab" * 10)
    watched.outlook()
    assert watched.metrics.forecasts.work(1.0) == pytest.approx(0, abs=0.01)
    watched.fold("b")
    assert watched.metrics.forecasts.work(1.0) == pytest.approx(0, abs=0.01)
    watched.fold("bab" * 2)
    assert watched.metrics.forecasts.work(0.001) > 0.001


def test_a_forecast_that_takes_several_updates_is_made_once() -> None:
    watched = Watched()
    watched.fold("babababababbababababb" * 20)
    forecasts, parts = watched.metrics.forecasts, 0
    while forecasts.work(0.01) > 0.009:
        parts += 1
        if forecasts._known["search"].forecast is not None:
            break
        forecasts.update(watched.metrics.figures)
    assert parts > 1
    assert forecasts.work(0.01) < 0.009, "there is nothing left to do"


def test_the_thread_keeps_to_its_share_of_a_core() -> None:
    watched = Watched()
    watched.fold("ba" * 3000)

    class Counting(Forecasts):
        spent = 0.0

        def work(self, seconds: float) -> float:
            done = super().work(seconds)
            self.spent += done
            return done

    forecasts = Counting()
    thread = HistoryThread(History(), lambda: watched.metrics.figures, forecasts)
    thread.start()
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 4)
    thread.stop()
    # 4 % of a core, and at most one part more.
    assert 0 < forecasts.spent < 0.04 * (time.monotonic() - began) + 0.01
