"""What the measurements of latency, rebalances and growth compute from what they noted."""

from __future__ import annotations

import doctest

import pytest

from benchmarks import many_experiments, processes
from benchmarks.latency import latency_of
from benchmarks.live import Moment

STEADY = 10.0
"""Seconds after the first record: later than the time that is not counted."""


def test_a_latency_is_the_sum_of_its_parts() -> None:
    appended = [[0.0, STEADY, STEADY + 0.001]]
    polls = {0: [Moment(1, 0.1), Moment(2, STEADY + 0.004), Moment(3, STEADY + 0.005)]}
    commits = {0: [Moment(1, 0.2, 0.01), Moment(3, STEADY + 0.060, 0.008)]}
    seen = {(0, -1): -1.0, (0, 0): 0.3, (0, 1): STEADY + 0.062}
    found = latency_of(seen, appended, polls, commits)
    assert found.waits == [pytest.approx(0.062)]
    assert {name: values[0] for name, values in found.parts.items()} == {
        "fetch": pytest.approx(0.004),
        "fold and wait": pytest.approx(0.048),
        "commit": pytest.approx(0.008),
        "read": pytest.approx(0.002),
    }


@pytest.mark.parametrize("module", [many_experiments, processes])
def test_examples_of_the_figures(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0
