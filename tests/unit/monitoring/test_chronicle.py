"""The lines that tell of turns: each once, when a commit has made it visible."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamduel.monitoring.chronicle import Chronicle
from streamduel.stream.task import PartitionTask
from tests.unit.monitoring.fold import config, duels, fold, task

NUMBERS = iter(range(10**6))


def control(action: str, **fields: Any) -> bytes:
    record = {"type": "control", "id": f"c-{next(NUMBERS)}", "experiment": "search"}
    return json.dumps({**record, "action": action, **fields}).encode()


class Told:
    """An experiment whose chronicle is read after every commit."""

    def __init__(self, caplog: pytest.LogCaptureFixture, **settings: Any) -> None:
        self.caplog, self.chronicle = caplog, Chronicle()
        self.task: PartitionTask = task(config({"search": ("x", "y", "z")}, **settings))
        self.chronicle.restored(self.task)

    def lines(self, *records: bytes) -> list[str]:
        fold(self.task, *records)
        self.task.take_commit()
        assert self.caplog.messages == [], "nothing before the commit"
        self.chronicle.committed([self.task], 0.1)
        lines = [line.partition(" (epoch")[0] for line in self.caplog.messages]
        self.caplog.clear()
        return lines


def test_every_turn_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    assert told.lines(*duels("search", 0, "x", "y", "aaa")) == []
    assert told.lines(control("pause")) == [
        "experiment 'search': paused, before running; the champion is 'x'"
    ]
    assert told.lines(*duels("search", 10, "x", "y", "aaa")) == []
    assert told.lines(control("resume"), control("add_arm", arm="w")) == [
        "experiment 'search': arm 'w' has joined",
        "experiment 'search': running, before paused; the champion is 'x'",
    ]
    assert told.lines(control("retire_arm", arm="z")) == [
        "experiment 'search': arm 'z' was retired"
    ]
    assert told.lines(control("freeze_pair", a="w", b="x")) == [
        "experiment 'search': the pair 'x' and 'w' is frozen"
    ]
    assert told.lines(control("unfreeze_pair")) == ["experiment 'search': no pair is frozen now"]


def test_the_change_of_algorithm_is_told(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog, policy={"name": "auto"})
    cycle = [("x", "y"), ("y", "z"), ("z", "x")]
    records = [
        json.dumps(
            {"type": "duels", "id": f"d-{a}", "experiment": "search", "a": a, "b": b,
             "wins_a": 900, "wins_b": 100, "ties": 0}
        ).encode()
        for a, b in cycle
    ]  # fmt: skip
    assert told.lines(*records) == [
        "experiment 'search': policy 'auto' goes on as 'double_thompson', before as 'rmed1'"
    ]
    told.chronicle.restored(told.task)
    assert told.lines(*duels("search", 0, "x", "y", "aaa")) == []


def test_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog, stop={"confidence": 0.95})
    clear = [
        duels("search", start, "x", other, "a" * 400) for start, other in ((0, "y"), (500, "z"))
    ]
    assert told.lines(*clear[0], *clear[1]) == [
        "experiment 'search': finished, before running; the champion is 'x'"
    ]
