"""`streamduel analyze`: what a click log says, as a table, JSON, CSV and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from streamduel.analysis.analyze import Request
from streamduel.analysis.analyze import analyze as analyze_log
from streamduel.analysis.counting import Rules
from streamduel.analysis.engine import MEMORY
from streamduel.analysis.inputs import REMOTE, paths
from streamduel.analysis.page import render
from streamduel.analysis.pairs_csv import pairs_csv
from streamduel.analysis.report import Analysis
from streamduel.cli.analyze_tables import print_analysis
from streamduel.cli.app import err, exit_at_signals, out
from streamduel.cli.outputs import check_places, check_writable
from streamduel.config.experiment import JOIN_WINDOW_MS, MAX_EXAMPLES
from streamduel.errors import ConfigurationError, InterleavingError
from streamduel.files import identity, write_whole
from streamduel.records import MAX_TIME

Logs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="LOG…",
        help="Files, directories, patterns such as 'logs/*.parquet', or addresses (s3://, gs://,"
        " https://): JSON Lines, CSV or Parquet, compressed or not; streamduel's own records, the"
        " exports of UBI and Solr, or a table with columns for two rankers and who won.",
        show_default=False,
    ),
]
Sql = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="Read the rows of a query in DuckDB's SQL; statements before it, such as ATTACH for a"
        " database, run first.",
    ),
]
ExperimentName = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        metavar="NAME",
        help="Look at this experiment only. It is also the name of records that name none.",
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Name the column of a field that is not recognised: a, b, winner, teams, clicks, id,"
        " ts, client, segment, … segment may be given several times.",
    ),
]
CreditName = Annotated[
    str,
    typer.Option(
        "--credit",
        metavar="NAME",
        help="The credit function that decides; the others are compared with it.",
    ),
]
Weight = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="ACTION=NUMBER",
        help="For the credit function weighted: what a click with this action weighs, such as"
        " cart=3.",
    ),
]
TieRule = Annotated[
    Literal["half", "drop"],
    typer.Option("--ties", help="Whether a tie is half a win for each side, or no duel."),
]
NoClickRule = Annotated[
    Literal["tie", "drop"],
    typer.Option("--no-click", help="Whether a list without clicks is a tie, or no duel."),
]
JoinWindow = Annotated[
    int,
    typer.Option(
        "--join-window-ms",
        metavar="MS",
        min=0,
        max=MAX_TIME,
        help="The longest time between a list and its clicks, in milliseconds.",
    ),
]
Memory = Annotated[
    str,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory for the log, such as 2GB; the rest goes to temporary files in TMPDIR.",
    ),
]
ExampleCount = Annotated[
    int,
    typer.Option(
        "--examples",
        metavar="N",
        min=0,
        max=MAX_EXAMPLES,
        help="Lists of the leading rankers to show, with the users' queries; 0: none.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write everything that was found as JSON."),
]
CsvFile = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write the pairs, a row for each, as CSV."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a report: one HTML file that loads nothing from elsewhere.",
    ),
]


def analyze(
    logs: Logs = None,
    sql: Sql = None,
    experiment: ExperimentName = None,
    columns: Map = None,
    credit: CreditName = "click_count",
    weight: Weight = None,
    ties: TieRule = "half",
    no_click: NoClickRule = "tie",
    join_window_ms: JoinWindow = JOIN_WINDOW_MS,
    memory: Memory = MEMORY,
    examples: ExampleCount = MAX_EXAMPLES,
    json: JsonFile = None,
    csv: CsvFile = None,
    report: ReportFile = None,
) -> None:
    """Show which ranker has won in a click log of any origin, and with what confidence.

    The order of the rows does not matter: clicks are joined to their lists by their times, and
    repeated records count once. A champion is named with 95 % confidence; otherwise the experiment
    is undecided.

    For example, a log of streamduel, and one with other columns:

        streamduel analyze clicks.jsonl --report found.html

        streamduel analyze logs/*.parquet --map a=left_ranker --map b=right_ranker
    """
    named = (("--json", json), ("--csv", csv), ("--report", report))
    files = [(option, path) for option, path in named if path is not None]
    check_places(files, _inputs(logs or [], columns or []))
    check_writable(files)
    request = Request(
        logs=logs or [],
        sql=sql,
        experiment=experiment,
        columns=columns or [],
        credit=credit,
        weights=_weights(weight or []),
        rules=Rules(ties, no_click),
        join_window_ms=join_window_ms,
        memory=memory,
        examples=examples,
    )
    with exit_at_signals(), _progress(err) as progress:
        try:
            analysis = analyze_log(request, progress)
        except InterleavingError as error:
            raise ConfigurationError(f"--credit: {error}") from error
    _write(analysis, json, csv, report)
    print_analysis(out, analysis)  # last: its reader may end early, as `head` does


def _inputs(logs: list[str], columns: list[str]) -> dict[Path, str]:
    """The local files of the log, by identity."""
    found: dict[Path, str] = {}
    for log in logs:
        if log.startswith(REMOTE):
            continue
        try:
            found |= {identity(path): "the log" for path in paths(log)}
        except ConfigurationError as error:
            if not columns or "=" not in log:
                raise
            raise ConfigurationError(
                f"{str(error).removesuffix('.')}; --map takes one value each time: write --map "
                f"{log}."
            ) from error
    return found


def _weights(texts: list[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for text in texts:
        action, _, number = text.partition("=")
        try:
            weight = float(number if action else "")
        except ValueError:
            raise ConfigurationError(
                f"--weight must be ACTION=NUMBER, such as cart=3 (found {text!r})."
            ) from None
        if action in weights:
            raise ConfigurationError(
                f"--weight must weigh '{action}' once (found {weights[action]:g} and {weight:g})."
            )
        weights[action] = weight
    return weights


def _write(analysis: Analysis, json: Path | None, csv: Path | None, report: Path | None) -> None:
    """Write the files that were asked for."""
    if json is not None:
        write_whole(json, msgspec.json.format(msgspec.json.encode(analysis)) + b"\n")
    if csv is not None:
        write_whole(csv, pairs_csv(analysis).encode())
    if report is not None:
        write_whole(report, render(analysis).encode())


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A progress bar for the present step; without a terminal nothing is shown."""
    if not console.is_terminal:
        yield lambda _what, _share: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task("reading", total=1.0)
        yield lambda what, share: progress.update(bar, description=what, completed=share)
