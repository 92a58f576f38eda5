"""The tables of `streamduel simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamduel.errors import counted
from streamduel.simulation.results import PolicyResult, Results, Sure

MIN_NAME: Final = 16
"""Columns of the terminal that a name keeps if numbers need much room."""


def print_results(console: Console, results: Results, source: str) -> None:
    """Print each policy's regret, the smallest first, then when it had an answer.

    Args:
        console: to print to.
        results: finished runs.
        source: of the preferences.
    """
    settings = results.settings
    names = settings.labels()
    rows = [
        (names[settings.specs.index((result.name, result.params))], result)
        for result in results.policies()
    ]
    where = f"on {escape(source)}, {settings.n_arms} arms, seed {settings.seed}"
    title = f"{settings.regret} regret after {counted(settings.horizon, 'duel')} {where}"
    table = table_of_numbers(
        ["policy", "regret", "± s.e.", "accuracy", "runs", "s/run"],
        [
            [name, *_regret_cells(result)]
            for name, result in sorted(rows, key=lambda row: row[1].mean[-1])
        ],
    )
    print_titled(console, title, table)
    answers = [(name, result.sure) for name, result in rows if result.sure is not None]
    if answers:
        level = 100 * answers[0][1].confidence
        title = f"duels until an answer with {level:.10g} % confidence"
        print_titled(console, title, _answer_table(answers, settings.horizon))


def print_titled(console: Console, title: str, table: Table) -> None:
    """Print a table below its title, which rich would wrap to the width of the table."""
    console.print(title, style="italic", highlight=False, soft_wrap=True)
    console.print(table, crop=False)


def table_of_numbers(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first column is names, which fold, and the others numbers, which are never cut.

    If the numbers do not fit into the terminal, it is wider than the terminal.
    """
    table, rows = Table(), list(rows)
    for place, column in enumerate(zip(headings, *rows, strict=True)):
        longest = max(map(cell_len, column))
        if place:
            table.add_column(column[0], justify="right", no_wrap=True, min_width=longest)
        else:
            table.add_column(column[0], overflow="fold", min_width=min(longest, MIN_NAME))
    for name, *numbers in rows:
        table.add_row(escape(name), *numbers)
    return table


def _regret_cells(result: PolicyResult) -> list[str]:
    return [
        f"{result.mean[-1]:,.1f}",
        f"{result.std_error[-1]:,.1f}",
        f"{result.champion_accuracy[-1]:.0%}",
        f"{result.runs:,}",
        f"{result.seconds_per_run:.2g}",
    ]


def _answer_table(answers: list[tuple[str, Sure]], horizon: int) -> Table:
    """When each policy had an answer, the soonest first."""
    # Only on some preferences can a run find that there is no winner.
    has_none = any(sure.none for _, sure in answers)
    headings = [
        "policy", "median", "90 %", "regret", "never", *["no winner"][: has_none], "wrong",
    ]  # fmt: skip
    rows = []
    for name, sure in sorted(answers, key=lambda row: (row[1].median, row[1].p90)):
        duels = [f"{at:,}" if at < horizon else "never" for at in (sure.median, sure.p90)]
        counts = [sure.never, *[sure.none][:has_none], sure.wrong]
        rows.append([name, *duels, f"{sure.regret:,.1f}", *(f"{count:,}" for count in counts)])
    return table_of_numbers(headings, rows)
