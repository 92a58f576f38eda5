"""The outlook of experiments: traffic, simulations in small parts, and honest silence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from streamduel.monitoring.api import Forecast as Answer
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.forecasts import outlook as outlook_of
from streamduel.monitoring.outlook import SURE, Outlook
from streamduel.monitoring.page.wording import THIN, outlook
from streamduel.monitoring.view_parts import GuardrailEffect
from streamduel.simulation.forecast import Forecast
from tests.unit.monitoring.fold import (
    Clock,
    commit,
    config,
    duels,
    fold,
    scrape,
    task,
    value,
)
from tests.unit.monitoring.forecasted import Watched

DAY = 86_400.0


def test_the_time_follows_from_duels_and_traffic() -> None:
    """55 % of 400 duels of two rankers, one a minute: sure in some days."""
    watched = Watched(gap=60.0)
    for _ in range(20):
        watched.fold("babababababbababababb"[:20])
    found = watched.outlook()
    assert found.why_not is None
    assert 0.05 * DAY < found.low < found.median < found.high
    assert 0.1 * DAY < found.median < 10 * DAY
    faster = Watched(gap=6.0)
    for _ in range(20):
        faster.fold("babababababbababababb"[:20])
    assert faster.outlook().median == pytest.approx(found.median / 10)
    assert value(scrape(watched.metrics.registry), "forecast_seconds", experiment="search") == (
        found.median
    )
    assert outlook(found).startswith("Sure in ")


def test_it_counts_down_until_it_is_sure() -> None:
    watched = Watched()
    for _ in range(10):
        watched.fold("babab")
    first = watched.outlook()
    watched.fold("b")
    second = watched.metrics.figures.outlook("search")
    assert second.median == pytest.approx(first.median - 60, rel=0.05)
    watched.fold("b" * 90)
    assert watched.outlook() == SURE
    assert value(scrape(watched.metrics.registry), "forecast_seconds", experiment="search") == 0
    assert outlook(SURE) == ""


def test_an_answer_within_the_margin_is_sure() -> None:
    """Also where exploration goes on after it."""
    watched = Watched(policy={"name": "top_two", "smallest_difference": 0.2}, aim="earn")
    watched.fold("ba" * 200)
    view = watched.metrics.figures.experiment("search")
    assert view is not None
    assert view.status == "running"
    assert view.confidence < 0.95 <= view.verdict.unbeaten
    assert watched.outlook() == SURE


def test_an_arm_that_is_served_alone_brings_no_answer_closer() -> None:
    """Half as many duels of an arm with itself as others: that takes half as long again."""
    watched = Watched()
    for _ in range(11):
        watched.fold("babababababbababababb"[:20])
    first = watched.outlook()
    watched.fold("t" * 100, b="bm25")
    assert watched.outlook().median == pytest.approx(1.5 * first.median)


def test_the_traffic_of_a_pause_tells_nothing() -> None:
    watched = Watched()
    for _ in range(20):
        watched.fold("babababababbababababb"[:20])
    first = watched.outlook()
    watched.act("pause")
    watched.fold("t" * 500, b="bm25")
    watched.act("resume")
    assert watched.outlook().why_not == "no_traffic"
    watched.fold("ba" * 10)
    assert watched.metrics.figures.outlook("search").median == (
        pytest.approx(first.median - 20 * 60, rel=0.06)  # `resume` takes a minute, too
    )


@pytest.mark.parametrize(("alone", "seconds"), [(False, 200), (True, 300)])
def test_a_policy_that_serves_an_arm_alone_itself(alone: bool, seconds: float) -> None:
    """50 of 200 duels since the forecast, when guardrails take half of the traffic."""
    watched = Watched()
    watched.fold("ba" * 30)
    found = watched.metrics.figures.experiment("search")
    assert found is not None
    of = replace(found, guardrails=GuardrailEffect(0.5, ()))
    made = Forecast(of.fought, 100, of.fought + 200, None, 0.2, 20_000, alone)
    view = replace(of, duels=of.duels + 50)
    assert outlook_of(view, made, of, 1.0, watched.clock.now).median == seconds


def test_the_end_is_not_before_the_minimum() -> None:
    """Duels of a ranker with itself count for `min_duels`; one in three is one."""
    watched = Watched(gap=60.0, stop={"min_duels": 3000})
    for _ in range(10):
        watched.fold("bbabb" * 8)
        watched.fold("t" * 20, b="bm25")
    for _ in range(3):  # also when no simulation takes longer
        found = watched.outlook()
        left = 60.0 * (3000 - watched.task.experiments["search"].policy.duels)
        assert found.why_not is None
        assert (found.low, found.median, found.high) == pytest.approx((left, left, left), rel=0.01)
        watched.fold("b" * 4)
        assert watched.metrics.figures.outlook("search").median == pytest.approx(
            left - 240, rel=0.01
        )


def test_a_forecast_that_the_experiment_outlives_is_made_again() -> None:
    """55 % of 200 duels are not enough; after them, the two rankers are equal."""
    watched = Watched()
    for _ in range(10):
        watched.fold("babababababbababababb"[:20])
    first = watched.outlook()
    more = int(first.median / 60) + 1  # one a minute
    watched.fold(("ba" * more)[:more])
    assert watched.metrics.figures.outlook("search").why_not == "computing"
    second = watched.outlook()
    assert second.why_not == "no_end" or second.median > 0
    assert second.why_not != "computing"


def test_no_duels_no_traffic_no_end_and_a_pause_are_told_apart() -> None:
    watched = Watched()
    assert watched.outlook().why_not == "few_duels"
    for _ in range(2):
        watched.fold("ba" * 30)
    assert watched.metrics.figures.outlook("search").why_not == "computing"
    assert watched.outlook().why_not is None
    watched.clock.now += 7 * DAY
    assert watched.outlook().why_not == "no_traffic"
    watched.clock.now -= 7 * DAY
    watched.act("pause")
    assert watched.outlook().why_not == "paused"
    samples = scrape(watched.metrics.registry)
    assert math.isnan(value(samples, "forecast_seconds", experiment="search"))
    assert Answer.of(watched.outlook()) == Answer(None, None, None, "paused")


@pytest.mark.parametrize(
    ("policy", "stop"),
    [
        ({}, {}),
        ({}, {"confidence": 0.99, "min_duels": 30}),
        ({"confidence": 0.8}, {"confidence": 0.999}),
        ({"confidence": 0.999}, {"confidence": 0.8}),
        ({"min_duels": 40}, {}),
        ({"min_duels": 40}, {"min_duels": 30}),
        ({"min_duels": 40}, {"confidence": 0.95, "min_duels": 30}),
        ({"confidence": 0.999}, {"confidence": 0.99, "min_duels": 400}),
        ({"name": "rucb"}, {"confidence": 0.99}),
    ],
)
def test_it_waits_for_the_end_that_comes_first(
    policy: dict[str, object], stop: dict[str, object]
) -> None:
    """Of the policy's own, and that of the stop rule."""
    watched = Watched(policy={"name": "top_two", **policy}, stop=stop)
    sure: list[tuple[str, bool]] = []
    while not sure or sure[-1][0] == "running":
        watched.fold("b")
        view = watched.metrics.figures.experiment("search")
        assert view is not None
        sure.append((view.status, view.is_sure))
    assert sure == [("running", False)] * (len(sure) - 1) + [("finished", True)]


def test_only_the_end_of_a_forecast_may_be_open() -> None:
    watched = Watched()
    watched.fold("ba" * 30)
    view = watched.metrics.figures.experiment("search")
    assert view is not None
    made = Forecast(60, low=70, median=160, high=None, never=0.3, horizon=1000)
    found = outlook_of(view, made, view, 0.5, watched.clock.now)
    assert (found.low, found.median, found.why_not) == (20.0, 200.0, None)
    assert math.isnan(found.high)
    assert outlook_of(view, made._replace(median=None), view, 0.5, watched.clock.now).why_not == (
        "no_end"
    )


def test_without_certainty_there_is_no_time_after_the_end() -> None:
    """Exploration can end with less confidence than is waited for, such as at a horizon."""
    watched = Watched()
    watched.fold("ba" * 30)
    watched.outlook()
    running = watched.metrics.figures.experiment("search")
    assert running is not None
    ended = replace(running, status="finished")
    assert not ended.is_sure
    assert outlook_of(ended, None, None, 1.0, 0.0).why_not == "finished"


@pytest.mark.parametrize(
    ("settings", "why_not"),
    [
        ({"policy": {"name": "rucb"}}, "no_winner"),
        ({"policy": {"name": "rucb"}, "stop": {"confidence": 0.9999}}, "computing"),
        ({"policy": {"name": "top_two", "aim": "earn"}}, "no_winner"),
        ({"policy": {"name": "double_thompson"}}, "computing"),
    ],
)
def test_that_no_ranker_beats_all_others_is_an_answer(
    settings: dict[str, object], why_not: str
) -> None:
    metrics = Metrics("files", Clock())
    cycle = task(config({"search": ["a", "b", "c"]}, **settings))
    for a, b in (("a", "b"), ("b", "c"), ("c", "a")):
        fold(cycle, *duels("search", cycle.next_offset, a, b, "a" * 44 + "b" * 16))
    commit(metrics, cycle)
    forecasts = metrics.forecasts
    forecasts.update(metrics.figures)
    assert metrics.figures.outlook("search").why_not == why_not
    assert bool(forecasts._due) == (why_not == "computing"), "an answer needs no work"


def test_without_timestamps_there_is_no_rate() -> None:
    watched = Watched(gap=0.0)
    watched.fold("ba" * 30)
    assert watched.outlook().why_not == "no_traffic"


def test_a_reset_begins_again() -> None:
    watched = Watched()
    for _ in range(2):
        watched.fold("babab" * 10)
    assert watched.outlook().why_not is None
    watched.act("reset")
    assert watched.outlook().why_not == "few_duels"


def test_sentences() -> None:
    assert outlook(Outlook(60.0, 30.0, np.nan)) == (
        f"Sure in 1{THIN}min at today's traffic (80{THIN}%: 30{THIN}s to long after)."
    )
