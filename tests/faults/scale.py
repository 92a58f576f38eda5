"""The size of the scenarios: full in `make faults`, a short cut of each kind in `make test`."""

from __future__ import annotations

from typing import TypeVar

from tests.broker.fixture import FULL

Size = TypeVar("Size")


def scaled(full: Size, quick: Size) -> Size:
    """The size for this run."""
    return full if FULL else quick
