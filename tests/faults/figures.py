"""What the scenarios measured: a line each, `build/faults.json`, and the documented table.

`python -m tests.faults.figures docs/reliability.md` writes the table into the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tests.faults.processes import ROOT

FIGURES: Final = ROOT / "build" / "faults.json"

BEGIN: Final = "<!-- figures: python -m tests.faults.figures docs/reliability.md -->\n"
END: Final = "<!-- end of figures -->\n"


class Figures(NamedTuple):
    """What a scenario measured.

    Attributes:
        fault: in a few words.
        records: the length of the click log.
        faults: how often it happened.
        lost: records that an undisturbed run counts and this one does not.
        doubled: records that this one counts more often.
        gaps: seconds from each fault until every partition has a newly visible commit.
        note: anything else that was seen.
    """

    fault: str
    records: int
    faults: int
    lost: int
    doubled: int
    gaps: Sequence[float] = ()
    note: str = ""

    def line(self) -> str:
        """All of it in one line."""
        gaps = f", first commit after median {self.median} s, worst {self.worst} s"
        return (
            f"{self.fault}: {self.records:,} records, {self.faults} faults, lost {self.lost}, "
            f"doubled {self.doubled}{gaps if self.gaps else ''}{self.note and f'; {self.note}'}"
        )

    @property
    def median(self) -> str:
        """The median gap, in seconds."""
        return f"{median(self.gaps):.1f}" if self.gaps else ""

    @property
    def worst(self) -> str:
        """The longest gap, in seconds."""
        return f"{max(self.gaps):.1f}" if self.gaps else ""


def table(measured: dict[str, Figures]) -> str:
    """A Markdown table, a row for each test."""
    rows = [
        "| fault | records | faults | lost | doubled | first commit after: median | worst | seen "
        "| test |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for test, each in measured.items():
        file, _, name = test.partition("::")
        rows.append(
            f"| {each.fault} | {each.records:,} | {each.faults:,} | {each.lost} | {each.doubled} "
            f"| {each.median and f'{each.median} s'} | {each.worst and f'{each.worst} s'} "
            f"| {each.note} | `{Path(file).name}::{name}` |"
        )
    return "\n".join(rows) + "\n"


def load() -> dict[str, Figures]:
    """The figures of the last run, by test."""
    found = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return {test: Figures(**each) for test, each in found.items()}


def save(measured: dict[str, Figures]) -> None:
    """Replace the figures of these tests."""
    FIGURES.parent.mkdir(exist_ok=True)
    everything = {test: each._asdict() for test, each in (load() | measured).items()}
    FIGURES.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


def main() -> None:
    page = Path(sys.argv[1])
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(before + BEGIN + "\n" + table(load()) + "\n" + END + after)


if __name__ == "__main__":
    main()
