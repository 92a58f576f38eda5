"""Assignment records and a clock for the tests of the client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

PATIENCE: Final = 120.0
"""Timeout in seconds, far above what any wait takes on a busy machine."""

NOW: Final = 1_790_000_000.0


class Clock:
    """A clock that is advanced by hand."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def record(
    epoch: int = 17, pairs: dict[tuple[str, str], float] | None = None, **fields: Any
) -> str:
    """An assignment record."""
    if pairs is None:
        pairs = {("bm25", "ltr"): 0.75, ("ltr", "ltr"): 0.25}
    return json.dumps(
        {
            "type": "assignment", "experiment": "search", "epoch": epoch, "policy": "rucb",
            "champion": "ltr",
            "pairs": [
                {"a": a, "b": b, "share": share, "remaining": None}
                for (a, b), share in pairs.items()
            ],
            "duels": 52341, "status": "running", "partition": 3, "offset": 881234,
            "ts": 1790000000000,
        }
        | fields
    )  # fmt: skip


def alone(arm: str, epoch: int = 17, **fields: Any) -> str:
    """An assignment that serves one arm alone."""
    return record(epoch, {(arm, arm): 1.0}, **fields)


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.005)
