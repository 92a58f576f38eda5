"""Alarms in a heap are what they would be in a plain dictionary."""

from __future__ import annotations

import random

import pytest

from streamduel.stream.alarms import Alarms


@pytest.mark.parametrize("experiments", [1, 2, 8, 50])
@pytest.mark.parametrize("seed", range(5))
def test_the_next_and_the_due_are_those_of_a_dictionary(seed: int, experiments: int) -> None:
    luck = random.Random(seed)
    alarms, plain, now, rung = Alarms(), {}, 0, 0
    for _ in range(1_000):
        if luck.random() < 0.7:
            name, at = f"search-{luck.randrange(experiments)}", now + luck.randrange(-5, 60)
            alarms.set(name, at)
            plain[name] = at
        else:
            now += luck.randrange(20)
        due = sorted(name for name, at in plain.items() if at <= now)
        assert alarms.due(now) == due
        assert not plain or alarms.next == min(plain.values())
        rung += bool(due)
    assert 100 < rung < 1_000
