"""The regret and the speed of the demo's impressions."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from streamduel.client import Draw
from streamduel.demo.display import MAX_SLEEP
from streamduel.demo.loop import Pace
from streamduel.demo.rankers import make_rankers
from streamduel.demo.statistics import MAX_POINTS, RECENT, Statistics
from tests.unit.demo.bed import Clock

WORLD = make_rankers(5, seed=2)
GAPS = WORLD.preferences[WORLD.best] - 0.5


def test_an_impression_costs_half_of_what_both_rankers_lose_against_the_best() -> None:
    statistics = Statistics(WORLD)
    statistics.count(Draw(WORLD.arms[0], WORLD.arms[1]))
    statistics.count(Draw(WORLD.arms[WORLD.best], WORLD.arms[WORLD.best]))
    assert statistics.regret == pytest.approx((GAPS[0] + GAPS[1]) / 2)
    assert statistics.impressions == 2
    assert sum(statistics.shown) == 3


def test_showing_all_pairs_equally_costs_their_mean() -> None:
    pairs = list(combinations(range(5), 2))
    statistics = Statistics(WORLD)
    for first, second in pairs:
        statistics.count(Draw(WORLD.arms[first], WORLD.arms[second]))
    assert statistics.regret == pytest.approx(statistics.uniform_regret(len(pairs)))
    assert statistics.bad == pytest.approx(statistics.uniform_bad(len(pairs)))
    assert statistics.bad == 10 - 3  # all pairs but those among the better three


def test_the_curve_stays_short_and_reaches_the_end() -> None:
    statistics = Statistics(WORLD)
    for _ in range(10 * MAX_POINTS):
        statistics.count(Draw(WORLD.arms[0], WORLD.arms[1]))
    assert MAX_POINTS / 2 <= len(statistics.curve) <= MAX_POINTS
    assert statistics.curve[0] == (0, 0.0)
    steps = {later[0] - sooner[0] for sooner, later in pairwise(statistics.curve)}
    assert steps == {16}
    assert statistics.curve[-1][0] > 10 * MAX_POINTS - 16
    for at, regret in statistics.curve:
        assert regret == pytest.approx(at * (GAPS[0] + GAPS[1]) / 2)


def test_shares_are_those_of_the_latest_lists_and_add_up() -> None:
    statistics = Statistics(WORLD)
    assert statistics.recent_shares() == [0.0] * 5
    for _ in range(RECENT):
        statistics.count(Draw(WORLD.arms[0], WORLD.arms[1]))
    assert statistics.recent_shares() == [0.5, 0.5, 0, 0, 0]
    for _ in range(RECENT // 2):
        statistics.count(Draw(WORLD.arms[4], WORLD.arms[4]))
    assert statistics.recent_shares() == [0.25, 0.25, 0, 0, 0.5]


def test_impressions_have_the_configured_speed() -> None:
    clock = Clock()
    pace = Pace(50, clock, clock.sleep, lambda: False)
    for _ in range(20):
        pace.wait(10)
    assert pace.seconds == pytest.approx(4.0)
    assert pace.measured == pytest.approx(50)


def test_an_infinite_speed_never_waits() -> None:
    clock = Clock()
    pace = Pace(float("inf"), clock, clock.sleep, lambda: False)
    pace.wait(10)
    assert pace.seconds == 0
    assert pace.measured == 0


def test_delays_are_not_made_up_for() -> None:
    clock = Clock()
    pace = Pace(10, clock, clock.sleep, lambda: False)
    clock.sleep(60)
    pace.wait(10)
    pace.wait(10)
    assert pace.seconds == pytest.approx(61)


def test_a_stop_ends_a_wait_within_one_sleep() -> None:
    clock = Clock()
    pace = Pace(1, clock, clock.sleep, lambda: clock.now >= 3)
    pace.wait(10)
    assert clock.now == pytest.approx(3, abs=MAX_SLEEP)


def test_the_measured_speed_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    pace = Pace(100, clock, clock.sleep, lambda: False)
    for _ in range(50):
        pace.wait(10)
    slow = Pace(100, clock, clock.sleep, lambda: False)
    slow.wait(10)
    clock.sleep(9.9)
    slow.wait(10)
    assert pace.measured == pytest.approx(100)
    assert slow.measured < 3
