"""RESULTS.md, written from the newest results of each benchmark, which results.json keeps.

So a benchmark can be repeated by itself, and a run that is interrupted loses only its last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from benchmarks import machine
from benchmarks.report import Benchmark, Goal, Result, markdown, table

STORE: Final = Path(__file__).with_name("results.json")
PAGE: Final = "RESULTS.md"
"""Beside the store."""

HEAD = """\
# Results

Written by `make bench`; do not edit. This page shows how fast streamduel is on one machine, and its
ratio to a reference measured in the same minutes. A figure is the median of several repetitions,
with (min–max). Ratios carry over to other machines, figures do not.
"""

TIMES = """\
The load average is that before the benchmark, on {cores} cores: it is from other programs, lowers
records per second, but hardly affects processor time. *Code* is the start of the SHA-256 of the
measured sources.
"""


class Measured(msgspec.Struct, frozen=True):
    """The results of a benchmark and their circumstances.

    Attributes:
        results: in their order.
        date: in UTC.
        load: of the machine, before it.
        code: the digest of the measured sources.
    """

    results: list[Result]
    date: str
    load: str
    code: str

    @classmethod
    def of(cls, benchmark: Benchmark, *, quick: bool) -> Self:
        """Run a benchmark."""
        date, load, code = f"{datetime.now(UTC):%Y-%m-%d %H:%M}", machine.load(), machine.digest()
        return cls(benchmark(quick), date, load, code)


def read(store: Path = STORE) -> dict[str, Measured]:
    """What is known of each benchmark; nothing if there is no store."""
    if not store.exists():
        return {}
    return msgspec.json.decode(store.read_bytes(), type=dict[str, Measured])


def put(name: str, measured: Measured, store: Path = STORE) -> None:
    """Keep new results of a benchmark, and write the page.

    Args:
        name: of the benchmark; a new one becomes the last of the page.
        measured: its results.
        store: where the others are.
    """
    known = {**read(store), name: measured}
    store.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")
    store.with_name(PAGE).write_text(document(known), encoding="utf-8")


def document(known: dict[str, Measured]) -> str:
    """The page."""
    results = [result for each in known.values() for result in each.results]
    goals = [goal for result in results for goal in result.goals]
    parts = [HEAD, _goals(goals), *map(markdown, results), _machine(), _times(known)]
    return "\n".join(part for part in parts if part)


def _goals(goals: Sequence[Goal]) -> str:
    if not goals:
        return ""
    rows = [
        [
            goal.what,
            goal.bound,
            f"{goal.found:.2f} {goal.unit}".strip(),
            "met" if goal.met else "missed",
        ]
        for goal in goals
    ]
    missed = sum(not goal.met for goal in goals)
    verdict = f"{missed} of {len(goals)} goals are missed" if missed else "All goals are met"
    return f"## Goals\n\n{table(['goal', 'bound', 'found', ''], rows)}\n\n{verdict}.\n"


def _machine() -> str:
    return f"## The machine\n\n{table(['', ''], machine.facts())}\n"


def _times(known: dict[str, Measured]) -> str:
    rows = [[f"`{name}`", each.date, each.load, each.code] for name, each in known.items()]
    times = TIMES.format(cores=machine.cores())
    columns = ["benchmark", "date, UTC", "load", "code"]
    return f"## When each was measured\n\n{times}\n{table(columns, rows)}\n"
