"""Delayed outcomes: their time and their completeness."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from streamduel.errors import ConfigurationError
from streamduel.policies import Policy, create
from streamduel.policies.base.generator import Generator
from streamduel.simulation.delay import (
    Delay,
    FixedDelay,
    GeometricDelay,
    UniformDelay,
    read_delay,
)
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.run import DelayedRun, SteppedRun


def delayed(delay: Delay, slate: int = 1, name: str = "rucb") -> DelayedRun:
    policy, environment = create(name, 6, seed=3), MatrixEnvironment(ARXIV, seed=3)
    return DelayedRun(policy, environment, delay, slate=slate, seed=3)


class Given(Delay):
    """Delays that are written down."""

    def __init__(self, delays: Sequence[int]) -> None:
        self._delays = iter(delays)

    def draw(self, generator: Generator) -> int:
        return next(self._delays)


def test_no_delay_is_the_stepped_run() -> None:
    late = delayed(FixedDelay(0))
    stepped = SteppedRun(create("rucb", 6, seed=3), MatrixEnvironment(ARXIV, seed=3))
    for way in (late, stepped):
        way.advance(100)
        way.advance(2000)
    assert late.in_flight == 0
    assert late.champion() == stepped.champion()
    assert (late.plays == stepped.plays).all()
    assert late.policy().state_dict() == stepped.policy().state_dict()


@pytest.mark.parametrize("d", [1, 7, 40])
def test_after_duel_s_plus_d_all_up_to_s_are_observed(d: int) -> None:
    way = delayed(FixedDelay(d))
    for t in range(1, 101):
        way.advance(t)
        assert way.in_flight == min(t, d)
        assert way.policy().duels == max(t - d, 0)


def test_outcomes_come_in_the_order_of_their_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    way = delayed(Given([3, 0, 1, 9, 0]), name="uniform")
    told: list[tuple[int, int]] = []
    fought: list[tuple[int, int]] = []
    policy, environment = way.policy(), way._environment
    observe, outcome = policy.observe, environment.outcome

    def listen(first: int, second: int, first_wins: float) -> None:
        told.append((first, second))
        observe(first, second, first_wins)

    def watch(first: int, second: int) -> float:
        fought.append((first, second))
        return outcome(first, second)

    monkeypatch.setattr(policy, "observe", listen)
    monkeypatch.setattr(environment, "outcome", watch)
    way.advance(5)
    assert told == [fought[1], fought[0], fought[2], fought[4]]
    assert way.in_flight == 1


def test_a_slate_is_proposed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    way = delayed(FixedDelay(0), slate=8)
    asked: list[int] = []
    propose = Policy.propose

    def listen(policy: Policy, n: int = 1) -> np.ndarray:
        asked.append(n)
        return propose(policy, n)

    monkeypatch.setattr(Policy, "propose", listen)
    for until in (1, 5, 8, 9, 30):  # stops within a slate do not begin a new one
        way.advance(until)
    assert asked == [8, 8, 8, 8]
    assert way.plays.sum() == way.policy().duels == 30


def test_stops_on_the_way_change_nothing() -> None:
    one, other = (delayed(GeometricDelay(10.0), slate=5) for _ in range(2))
    one.advance(1000)
    for until in range(0, 1001, 13):
        other.advance(until)
    other.advance(1000)
    assert one.policy().state_dict() == other.policy().state_dict()
    assert (one.plays == other.plays).all()


def test_a_delay_costs_regret() -> None:
    costs = (ARXIV[0] - 0.5) + (ARXIV[0] - 0.5)[:, None]
    prompt, late = delayed(FixedDelay(0)), delayed(FixedDelay(3000))
    for way in (prompt, late):
        way.advance(20_000)
    assert (late.plays * costs).sum() > (prompt.plays * costs).sum()


def drawn(delay: Delay, n: int = 20_000) -> np.ndarray:
    generator = Generator(1)
    return np.array([delay.draw(generator) for _ in range(n)])


def test_a_fixed_delay_is_fixed() -> None:
    assert set(drawn(FixedDelay(4), 10).tolist()) == {4}


def test_a_uniform_delay_has_each_value_equally_often() -> None:
    delays = drawn(UniformDelay(10, 14))
    values, counts = np.unique(delays, return_counts=True)
    assert values.tolist() == [10, 11, 12, 13, 14]
    assert (np.abs(counts / len(delays) - 0.2) < 4 * (0.16 / len(delays)) ** 0.5).all()


@pytest.mark.parametrize("mean", [0.5, 20.0])
def test_a_geometric_delay_has_its_mean_and_no_memory(mean: float) -> None:
    delays = drawn(GeometricDelay(mean))
    deviation = math.sqrt(mean * (mean + 1))
    assert abs(delays.mean() - mean) < 4 * deviation / len(delays) ** 0.5
    p = 1 / (1 + mean)
    for d in range(5):
        share, chance = (delays == d).mean(), p * (1 - p) ** d
        assert abs(share - chance) < 4 * (chance * (1 - chance) / len(delays)) ** 0.5


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("0", FixedDelay(0)),
        ("20", FixedDelay(20)),
        ("uniform:0-0", UniformDelay(0, 0)),
        ("uniform:10-30", UniformDelay(10, 30)),
        ("geometric:2.5", GeometricDelay(2.5)),
        ("geometric:123456.75", GeometricDelay(123456.75)),
        ("geometric:123456789", GeometricDelay(123456789.0)),
        ("geometric:0.00001", GeometricDelay(1e-5)),
        ("geometric:0.30000000000000004", GeometricDelay(0.1 + 0.2)),
    ],
)
def test_delays_are_read_and_written(text: str, delay: Delay) -> None:
    assert read_delay(text) == delay
    assert str(delay) == text


@pytest.mark.parametrize(
    "text", ["", "-1", "soon", "uniform:5-3", "uniform:5", "geometric:0", "geometric:-2", "1.5"]
)
def test_a_malformed_delay_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"the delay must be .* \(found '"):
        read_delay(text)
