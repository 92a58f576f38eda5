"""The tables of `streamduel simulate`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamduel.simulation.results import PolicyResult, Results, Sure


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
    table = _table(
        f"{settings.regret} regret after {settings.horizon:,} duels {where}",
        "policy", "regret", "± s.e.", "accuracy", "runs", "s/run",
    )  # fmt: skip
    for name, result in sorted(rows, key=lambda row: row[1].mean[-1]):
        table.add_row(escape(name), *_regret_cells(result))
    console.print(table)
    answers = [(name, result.sure) for name, result in rows if result.sure is not None]
    if answers:
        console.print(_answer_table(answers, settings.horizon))


def _table(title: str, *headings: str) -> Table:
    """A table of numbers whose first column is names."""
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        is_name = place == 0
        table.add_column(heading, justify="left" if is_name else "right", no_wrap=not is_name)
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
    level = 100 * answers[0][1].confidence
    # Only on some preferences can a run find that there is no winner.
    has_none = any(sure.none for _, sure in answers)
    table = _table(
        f"duels until an answer with {level:.10g} % confidence",
        "policy", "median", "90 %", "regret", "never", *["no winner"][: has_none], "wrong",
    )  # fmt: skip
    for name, sure in sorted(answers, key=lambda row: (row[1].median, row[1].p90)):
        duels = [f"{at:,}" if at < horizon else "never" for at in (sure.median, sure.p90)]
        counts = [sure.never, *[sure.none][:has_none], sure.wrong]
        cells = [*duels, f"{sure.regret:,.1f}", *(f"{count:,}" for count in counts)]
        table.add_row(escape(name), *cells)
    return table
