"""The drawings of regret and confidence over duels."""

from __future__ import annotations

from streamduel.monitoring.history import Point
from streamduel.monitoring.page.curve import SHARES, confidence_curve, regret_curve

POINTS = [Point(0.0, 0, 0.0, 0.0, 0.0), Point(0.0, 1000, 0.5, 30.0, 80.0)]


def test_the_band_of_regret_reaches_to_its_bound() -> None:
    curve = regret_curve(POINTS)
    assert curve is not None
    assert curve.across == (0, 1000, ("0", "500", "1k"))
    assert curve.up == (0, 100, ("0", "25", "50", "75", "100"))
    assert curve.grid == (0, 100, 200, 300)
    assert curve.line == "0.0,400.0 1000.0,280.0"
    assert curve.band == f"{curve.line} 1000.0,80.0 0.0,400.0"


def test_little_regret_looks_little() -> None:
    curve = regret_curve([POINTS[0], Point(0.0, 1000, 0.5, 0.1, 0.2)])
    assert curve is not None
    assert curve.up == (0, 1, ("0", "0.5", "1"))


def test_confidence_has_a_line_only() -> None:
    curve = confidence_curve(POINTS)
    assert curve is not None
    assert (curve.up, curve.band) == (SHARES, "")
    assert curve.line == "0.0,400.0 1000.0,200.0"
