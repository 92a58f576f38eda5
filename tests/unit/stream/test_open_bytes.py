"""The memory of open impressions and pending clicks is bounded, with and without restarts."""

from __future__ import annotations

import json
import random

import pytest

from streamduel.config import Config
from streamduel.testing import CRASH, END_OF_POLL, Broker, run

CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {}, "limits": {"max_open_bytes": 2**13},
        "dedupe": {"window_records": 400, "window_ms": 10**6},
        "experiments": {"search": {"arms": ["x", "y"], "decide_every": 3}},
    }
)  # fmt: skip


def log(seed: int, count: int = 300) -> list[bytes]:
    """Impressions and their clicks, in any order, some of them long."""
    chance = random.Random(seed)
    base: dict[str, object] = {"experiment": "search"}
    records: list[tuple[int, dict[str, object]]] = []
    for number in range(count // 3):
        shown = {"type": "impression", "id": f"i-{number}", "a": "x", "b": "y",
                 "teams": ["a", "b"] * chance.choice([1, 5, 40])}  # fmt: skip
        records.append((number + chance.choice([0, 0, 20]), base | shown))
        for click in range(2):
            made = {"type": "click", "id": f"c-{number}-{click}", "impression": f"i-{number}",
                    "rank": click, "note": "x" * chance.choice([0, 0, 900])}  # fmt: skip
            records.append((number + chance.choice([0, 1, 5, 30]), base | made))
    return [json.dumps(record).encode() for _, record in sorted(records, key=lambda it: it[0])]


def visible(values: list[bytes], *crashes: int) -> Broker:
    faults: list[object] = list(values)
    for place in sorted(crashes, reverse=True):
        faults[place:place] = [END_OF_POLL, CRASH]
    broker = Broker(faults)  # type: ignore[arg-type]
    run(CONFIG, broker)
    return broker


@pytest.mark.parametrize("seed", range(4))
def test_restarts_close_the_same_windows(seed: int) -> None:
    values = log(seed)
    expected = visible(values)
    state = json.dumps([str(entry) for entry in expected.snapshots[0].entries.values()])
    assert '"unjoined":0' not in state
    for first in range(0, len(values), 23):
        found = visible(values, first, min(first + 7, len(values)))
        assert found.snapshots == expected.snapshots
        assert found.assignments == expected.assignments
        assert found.dead_letters == expected.dead_letters
