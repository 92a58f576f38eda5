"""Stored outcomes, so that one figure can be computed again and the page rewritten."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.papers.experiment import Outcome, Picture, Table
from benchmarks.papers.verdict import Check

COMMITTED: Final = Path(__file__).with_name("outcomes.json")
"""The source of docs/papers.md, versioned like the page itself."""

DOCS: Final = Path("docs")
"""The folder of the project's own page."""


def state_file(out: Path, *, quick: bool) -> Path:
    """The file of outcomes for a page.

    Args:
        out: the folder of the page.
        quick: whether the run is a trial, whose outcomes are stored elsewhere.
    """
    return out / COMMITTED.name if quick or out != DOCS else COMMITTED


@dataclass(frozen=True)
class Record:
    """An outcome and its circumstances.

    Attributes:
        outcome: of the experiment.
        quick: whether the run was a trial.
        processor_seconds: including interrupted attempts.
        facts: the machine and the versions.
    """

    outcome: Outcome
    quick: bool
    processor_seconds: float
    facts: str


def load(path: Path) -> dict[str, Record]:
    """The records by the names of their experiments; none if there is no file."""
    if not path.exists():
        return {}
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {name: _record(fields) for name, fields in found.items()}


def save(path: Path, records: Mapping[str, Record]) -> None:
    """Write all records."""
    text = json.dumps(
        {name: asdict(record) for name, record in records.items()}, indent=1, ensure_ascii=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def _record(fields: Mapping[str, Any]) -> Record:
    outcome = dict(fields["outcome"])
    for key, kind in (("checks", Check), ("tables", Table), ("pictures", Picture)):
        outcome[key] = [kind(**each) for each in outcome[key]]
    return Record(**{**fields, "outcome": Outcome(**outcome)})


@dataclass(frozen=True)
class Spent:
    """Processor time of an experiment so far, over all attempts, in a file of the cache."""

    path: Path

    def add(self, seconds: float) -> float:
        """Add an attempt; returns the sum."""
        before = float(self.path.read_text()) if self.path.exists() else 0.0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"{before + seconds}\n")
        return before + seconds
