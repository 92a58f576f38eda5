"""The tables of `streamduel simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor
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
    answers = [(name, result.runs, result.sure) for name, result in rows if result.sure is not None]
    if answers:
        level = 100 * answers[0][2].confidence
        title = f"duels until an answer with {level:.10g} % confidence"
        print_titled(console, title, _answer_table(answers))


def print_titled(console: Console, title: str, table: Table) -> None:
    """Print a table below its title, which rich would wrap to the width of the table."""
    console.print(title, style="italic", highlight=False, soft_wrap=True)
    # rich would shrink the column of names to nothing, whatever its `min_width` is.
    least = 1 + sum((column.min_width or 0) + 3 for column in table.columns)
    if console.width < least:
        table.width = least
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
        _share_of_runs(result.champion_accuracy[-1]),
        f"{result.runs:,}",
        f"{result.seconds_per_run:.2g}",
    ]


def _share_of_runs(share: float) -> str:
    """A percentage that is 100% only if it holds for all runs, however many there are.

    >>> _share_of_runs(0.975), _share_of_runs(0.9996), _share_of_runs(1.0)
    ('98%', '99.9%', '100%')
    """
    return f"{floor(1000 * share) / 10:.1f}%" if 0.99 < share < 1 else f"{share:.0%}"


def _answer_table(answers: list[tuple[str, int, Sure]]) -> Table:
    """When each policy had an answer in its runs, the soonest first."""
    # Only on some preferences can a run find that there is no winner.
    has_none = any(sure.none for _, _, sure in answers)
    headings = [
        "policy", "median", "90 %", "regret", "never", *["no winner"][: has_none], "wrong",
    ]  # fmt: skip
    rows = []
    for name, runs, sure in sorted(answers, key=lambda row: (row[2].median, row[2].p90)):
        duels = [
            f"{at:,}" if 10 * (runs - sure.never) >= tenths * runs else "never"
            for at, tenths in ((sure.median, 5), (sure.p90, 9))
        ]
        counts = [sure.never, *[sure.none][:has_none], sure.wrong]
        rows.append([name, *duels, f"{sure.regret:,.1f}", *(f"{count:,}" for count in counts)])
    return table_of_numbers(headings, rows)
