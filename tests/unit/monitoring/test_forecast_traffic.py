"""The traffic that a forecast is converted to time with."""

from __future__ import annotations

import pytest

from streamduel.monitoring.forecasts import WINDOW_MS, Traffic


def test_it_is_bounded_and_of_the_last_day() -> None:
    traffic = Traffic()
    for minute in range(5000):  # slow for two days, fast for the last ones
        traffic.add(60_000 * minute, minute if minute < 3000 else 3000 + 10 * (minute - 3000))
    assert len(traffic._samples) <= 70
    assert traffic.rate == pytest.approx(10 / 60, rel=0.01)
    assert WINDOW_MS == 1000 * 86_400


def test_it_needs_some_duels_and_some_time() -> None:
    traffic = Traffic()
    assert traffic.rate is None
    traffic.add(0, 0)
    traffic.add(5000, 1000)
    assert traffic.rate is None
    traffic.add(20_000, 1010)
    assert traffic.rate == pytest.approx(50.5)
    traffic.add(30_000, 0)
    assert traffic.rate is None


def test_it_tells_how_many_duels_are_ties() -> None:
    traffic = Traffic()
    traffic.add(0, 1000, 700)
    assert traffic.tie_share is None
    traffic.add(10_000, 1199, 750)
    assert traffic.tie_share is None
    traffic.add(20_000, 1200, 750)
    assert traffic.tie_share == 0.25
    traffic.add(30_000, 2000, 0)  # those of an arm that has retired
    assert traffic.tie_share is None


@pytest.mark.parametrize(("at", "duels"), [(60_000, 0), (0, 2000)])
def test_it_begins_again_after_a_reset_and_in_an_earlier_time(at: int, duels: int) -> None:
    traffic = Traffic()
    traffic.add(0, 0)
    traffic.add(50_000, 1000)
    traffic.add(at, duels)
    assert traffic.rate is None
    traffic.add(at + 20_000, duels + 40)
    assert traffic.rate == 2.0
