"""Results of a benchmark, for the terminal and for a file."""

from __future__ import annotations

import argparse
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Goal:
    """A bound on a figure, set before the measurement.

    Attributes:
        what: the name of the figure.
        found: its value.
        at_most: the upper bound, or None.
        at_least: the lower bound, or None.
        unit: of the figure.
    """

    what: str
    found: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the figure keeps the bound."""
        above = self.at_most is None or self.found <= self.at_most
        return above and (self.at_least is None or self.found >= self.at_least)

    @property
    def bound(self) -> str:
        """The bound as text."""
        words = f"at most {self.at_most:g}" if self.at_most is not None else ""
        return f"{words or f'at least {self.at_least:g}'} {self.unit}".strip()

    @property
    def sentence(self) -> str:
        """The value, and whether it keeps the bound, as text."""
        found = f"{self.found:.2f} {self.unit}".strip()
        return f"{'Met' if self.met else '**Missed**'}: {self.what} is {found}; goal: {self.bound}."


@dataclass(frozen=True)
class Result:
    """A table of results.

    Attributes:
        title: what was measured.
        method: of the measurement, in sentences.
        columns: the headings.
        rows: the cells; the first column is text, the others are figures.
        goals: for some of the figures.
    """

    title: str
    method: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    goals: Sequence[Goal] = field(default_factory=tuple)


Benchmark = Callable[[bool], list[Result]]
"""Measures, quickly (True) or thoroughly."""


def show(result: Result, console: Console) -> None:
    """Print a result on a terminal."""
    shown = Table(title=result.title, title_justify="left", title_style="bold")
    for number, column in enumerate(result.columns):
        shown.add_column(column, justify="right" if number else "left")
    for row in result.rows:
        shown.add_row(*row)
    console.print(shown)
    for goal in result.goals:
        console.print(goal.sentence.replace("**", ""), style="green" if goal.met else "red")
    console.print()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first column is text, the others are figures."""
    rule = ["---", *("---:" for _ in columns[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


def markdown(result: Result) -> str:
    """A result in Markdown."""
    lines = [f"## {result.title}", "", result.method, "", table(result.columns, result.rows)]
    if result.goals:
        lines += ["", *(f"- {goal.sentence}" for goal in result.goals)]
    return "\n".join(lines) + "\n"


def alone(benchmark: Benchmark, description: str | None) -> None:
    """Run one benchmark from the command line and print its results."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--quick", action="store_true", help="fewer records and repetitions")
    given = arguments.parse_args()
    logging.basicConfig(level=logging.ERROR)
    console = Console(width=max(120, shutil.get_terminal_size().columns))
    for result in benchmark(given.quick):
        show(result, console)
