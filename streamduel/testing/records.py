"""Builders of click-log records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Record(NamedTuple):
    """One record of a click log, as a source delivers it: see `streamduel.connector.LogRecord`."""

    offset: int
    value: bytes | None
    timestamp: int | None = None
    key: bytes | None = None


def encode(record: Mapping[str, Any]) -> bytes:
    """The JSON text of a record."""
    return json.dumps(record).encode()


def duel(experiment: str, number: int | str, a: str, b: str, winner: str | None) -> bytes:
    """The value of a `duel` record; `number` makes its id unique."""
    return encode(
        {"type": "duel", "id": f"id-{number}", "experiment": experiment, "a": a, "b": b,
         "winner": winner}
    )  # fmt: skip
