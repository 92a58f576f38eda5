"""Tables of an analysis for the terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from streamduel.analysis.report import Analysis, ExperimentAnalysis, Finding
from streamduel.analysis.segments import MAX_VALUES
from streamduel.analysis.wording import doubt, from_ahead, verdict
from streamduel.cli.app import GRADE_COLOURS
from streamduel.errors import counted, readable
from streamduel.preference.verdict import INTERVALS, at_least, some_include_half

MAX_ROWS: Final = 20
"""Rows of a table; `--json` and `--csv` have all."""


def print_analysis(console: Console, analysis: Analysis) -> None:
    """Print what was found about each experiment."""
    for name, experiment in analysis.experiments.items():
        console.print(Group(*_parts(name, experiment)))
    for reason, rows in sorted(analysis.unread.items()):
        console.print(f"{counted(rows, 'row')} left out: {escape(reason)}", highlight=False)
    for reason, rows in list(analysis.ignored.items())[:MAX_ROWS]:
        console.print(
            f"{counted(rows, 'row')} ignored: {escape(readable(reason))}", highlight=False
        )
    for name in analysis.left_out[:MAX_ROWS]:
        console.print(f"experiment {_name(name)} left out: too few records", highlight=False)
    if len(analysis.left_out) > MAX_ROWS:
        more = counted(len(analysis.left_out) - MAX_ROWS, "more experiment")
        console.print(f"{more} left out", highlight=False)
    if analysis.empty_files:
        files, first = counted(len(analysis.empty_files), "empty file"), analysis.empty_files[0]
        console.print(f"warning: {files} left out, such as '{_name(first)}'", highlight=False)


def _name(text: str) -> str:
    return escape(readable(text))


def _parts(name: str, found: ExperimentAnalysis) -> list[RenderableType]:
    doubted = doubt(found)
    colour = "bold green" if found.champion and not doubted else "bold yellow"
    parts: list[RenderableType] = [Text(f"{readable(name)}: {verdict(found)}", style=colour)]
    if doubted:
        parts.append(Text(doubted, style="bold red"))
    parts.append(_pairs(found))
    if found.champion is not None and some_include_half(found.champion, found.pairs):
        parts.append(Text(INTERVALS, style="dim italic"))
    parts.append(_sensitivity(found))
    parts += [_segments(kind, each) for kind, each in found.segments.items()]
    parts += [Text(each.sentence) for each in found.disagreements.values()]
    if found.checks:
        parts.append(_checks(found))
    tallies = ", ".join(f"{count:,} {what}" for what, count in found.tallies.items() if count)
    parts.append(Text(f"records: {tallies.replace('_', ' ')}\n"))
    return parts


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _pairs(found: ExperimentAnalysis) -> Table:
    unit = "clients" if found.clients.unit == "client" else "duels"
    table = _table("", "pair", "duels", "first wins", "ties", f"95 % interval ({unit})")
    for pair in found.pairs[:MAX_ROWS]:
        a, b, rate, (low, high) = from_ahead(pair, found.leader)
        table.add_row(
            f"{_name(a)} against {_name(b)}", f"{pair.duels:,}", f"{rate:.3f}",
            f"{pair.ties / pair.duels:.1%}", f"{low:.3f} … {high:.3f}",
        )  # fmt: skip
    if len(found.pairs) > MAX_ROWS:
        table.caption = f"{len(found.pairs) - MAX_ROWS:,} more pairs: --csv has all"
    return table


def _finding(found: Finding) -> str:
    if found.champion is not None:
        return f"{_name(found.champion)} {at_least(found.confidence)}"
    return f"undecided {at_least(found.confidence)}" if found.leader else "–"


def _sensitivity(found: ExperimentAnalysis) -> Table:
    rows = found.credit_rows
    rules = list(next(iter(rows.values())).rules)
    table = _table("If clicks were credited otherwise", "credit", *rules)
    for credit, each in rows.items():
        table.add_row(credit, *(_finding(each.rules[rule]) for rule in rules))
    return table


def _segments(kind: str, found: dict[str, Finding]) -> Table:
    largest = f", the {MAX_VALUES} largest" if len(found) == MAX_VALUES else ""
    table = _table(f"Segments: {_name(kind)}{largest}", "segment", "duels", "champion")
    for segment, each in found.items():
        table.add_row(_name(segment), f"{each.duels:,}", _finding(each))
    return table


def _checks(found: ExperimentAnalysis) -> Table:
    table = Table(title="Checks", title_justify="left", title_style="bold", show_header=False)
    for check in found.checks:
        colour = GRADE_COLOURS[check.verdict]
        table.add_row(f"[{colour}]{check.verdict}[/]", check.name, escape(check.sentence))
    return table
