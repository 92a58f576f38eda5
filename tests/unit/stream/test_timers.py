"""Timers in a heap equal timers in a plain dictionary."""

from __future__ import annotations

import random

import pytest

from streamduel.stream.timers import Timers


@pytest.mark.parametrize("experiments", [1, 2, 8, 50])
@pytest.mark.parametrize("seed", range(5))
def test_next_and_due_equal_those_of_a_dictionary(seed: int, experiments: int) -> None:
    luck = random.Random(seed)
    timers, plain, now, fired = Timers(), {}, 0, 0
    for _ in range(1_000):
        if luck.random() < 0.7:
            name, at = f"search-{luck.randrange(experiments)}", now + luck.randrange(-5, 60)
            timers.set(name, at)
            plain[name] = at
        else:
            now += luck.randrange(20)
        due = sorted(name for name, at in plain.items() if at <= now)
        assert timers.due(now) == due
        assert not plain or timers.next == min(plain.values())
        fired += bool(due)
    assert 100 < fired < 1_000
