"""The command line: `streamduel --help`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog
import typer
from rich.console import Console

from streamduel import __version__, policies
from streamduel import logging as log_lines
from streamduel.cli import tables
from streamduel.cli.control import control
from streamduel.cli.demo import demo
from streamduel.cli.progress import FoldProgress, replay_progress
from streamduel.cli.simulate import simulate
from streamduel.config import LoadedConfig, load
from streamduel.errors import ConfigurationError, SnapshotError, StreamduelError
from streamduel.monitoring.chronicle import Chronicle
from streamduel.monitoring.logbook import Logbook
from streamduel.service import StopSignal, serve
from streamduel.stream import inspection
from streamduel.stream.observer import Observer
from streamduel.stream.replay import replay as replay_log

app = typer.Typer(
    name="streamduel",
    help="Finds the best of K rankers from the clicks of real users.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)
log = structlog.stdlib.get_logger(__name__)

MISTAKE = 2
"""Exit status of a mistake in the configuration or on the command line."""
FAILURE = 1
"""Exit status of everything else that went wrong."""

ConfigPath = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.", show_default=False),
]
LogFormat = Annotated[
    log_lines.Chosen,
    typer.Option(
        "--log-format",
        envvar="STREAMDUEL_LOG_FORMAT",
        help="What the log on standard error looks like: text shows warnings, json what happens, "
        "too, and auto is text on a terminal and json elsewhere.",
    ),
]


def main() -> None:
    """Run the command line; a mistake is one sentence on standard error, never a traceback."""
    try:
        app()
    except StreamduelError as error:
        sentence = log_lines.hidden(f"streamduel: {error}")
        err.print(sentence, markup=False, highlight=False, soft_wrap=True)
        sys.exit(_status(error))


def _status(error: StreamduelError) -> int:
    return MISTAKE if isinstance(error, ConfigurationError | SnapshotError) else FAILURE


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"streamduel {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log more: -v what happens, -vv every detail, -vvv those of libraries, too.",
        ),
    ] = 0,
) -> None:
    context.obj = verbose
    log_lines.set_up("text", verbose)


def _load(path: Path) -> LoadedConfig:
    """The configuration, whose passwords no line will show."""
    loaded = load(path)
    log_lines.hide(loaded.source, loaded.sink, loaded.snapshots)
    return loaded


@app.command()
def run(
    context: typer.Context,
    config: ConfigPath,
    until_end: Annotated[
        bool,
        typer.Option(
            "--until-end", help="Stop, with a last snapshot, at the present end of the log."
        ),
    ] = False,
    log_format: LogFormat = "text",
) -> None:
    """Run the service: read clicks, learn, publish assignments.

    SIGTERM or Ctrl-C commits what is done and exits with status 0. Killed in any other way, it
    goes on from its last commit at the next start, and nothing is lost or counted twice.
    """
    form = log_lines.chosen(log_format, sys.stderr)
    log_lines.set_up(form, context.obj)
    log_lines.take_over()
    try:
        loaded = _load(config)
        _serve(loaded, form, until_end=until_end)
        if until_end:
            report = _report(loaded)
            tables.print_report(out, report)
            tables.print_places(out, loaded)
    except StreamduelError as error:
        if form == "text":
            raise
        log.error("failed", error=str(error), status=_status(error))
        raise typer.Exit(_status(error)) from None


def _serve(loaded: LoadedConfig, form: log_lines.Form, *, until_end: bool) -> None:
    """The service from its start to its end, with everybody who watches it."""
    stop, logbook = StopSignal(), Logbook(reported=until_end)
    stop.listen()
    logbook.started(loaded)
    watchers: list[Observer] = [Chronicle(), logbook]
    why = "an error"
    with ExitStack() as ending:
        ending.callback(lambda: logbook.stopped(why))
        ending.callback(_monitor(loaded, watchers, form))
        if until_end and err.is_terminal:
            with FoldProgress(err) as progress:
                serve(loaded, stop, until_end=True, observers=[*watchers, progress])
        else:
            serve(loaded, stop, until_end=until_end, observers=watchers)
        why = stop.signal or "the end of the log"


def _monitor(
    loaded: LoadedConfig, watchers: list[Observer], form: log_lines.Form
) -> Callable[[], None]:
    """Serve metrics and health if the configuration wants it; returns how to end that."""
    settings = loaded.config.monitoring
    if settings is None:
        return lambda: None
    from streamduel.monitoring import Monitoring  # noqa: PLC0415 - its imports cost 0.2 s

    monitoring = Monitoring(settings, loaded)
    watchers.extend(monitoring.observers)
    host, port = monitoring.start()
    shown = f"[{host}]" if ":" in host else host  # an IPv6 address
    url = f"http://{shown}:{port}/"
    if form == "text":  # also where only warnings are shown
        err.print(f"status page and metrics on {url}", markup=False, highlight=False)
    else:
        log.info("monitoring served", url=url)
    return monitoring.stop


@app.command()
def validate(config: ConfigPath) -> None:
    """Check a configuration and start nothing."""
    loaded = _load(config)
    count = len(loaded.config.experiments)
    out.print(
        f"{config} is valid: {count} experiment{'s' if count > 1 else ''}, "
        f"{loaded.config.source['connector']} to {loaded.config.sink['connector']}.",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


@app.command()
def inspect(
    config: ConfigPath,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show the newest snapshots: who leads, by how much, and how many records had which fate."""
    loaded = _load(config)
    report = _report(loaded)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        tables.print_report(out, report)


def _report(loaded: LoadedConfig) -> inspection.Report:
    archive = loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)
    try:
        return inspection.inspect(archive)
    finally:
        archive.sink.close()
        archive.snapshots.close()


@app.command()
def replay(config: ConfigPath) -> None:
    """Fold the log again from its beginning and compare every assignment with what was published.

    Exits with 0 when all are equal; else shows the first difference and exits with 1.
    """
    loaded = _load(config)
    log = loaded.source_connector.open_log(loaded.source)
    archive = loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)
    try:
        with replay_progress(err) as progress:
            verdict = replay_log(loaded.config, log, archive, progress)
    finally:
        archive.sink.close()
        archive.snapshots.close()
        log.close()
    for name in verdict.unchecked:
        err.print(
            f"'{name}' is not configured any more and was not checked.",
            markup=False, highlight=False,
        )  # fmt: skip
    if verdict.difference:
        out.print(verdict.difference, markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(FAILURE)
    out.print(
        f"{verdict.records} records folded again, {verdict.assignments} assignments equal, "
        f"states equal.",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip


app.command()(control)
app.command()(demo)
app.command()(simulate)


@app.command(name="policies")
def list_policies(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List every policy: what it is, its parameters with defaults, and the paper."""
    if as_json:
        sys.stdout.write(json.dumps([_described(name) for name in policies.names()], indent=2))
        sys.stdout.write("\n")
    else:
        tables.print_policies(out)


def _described(name: str) -> dict[str, Any]:
    policy = policies.get(name)
    return {
        "name": name,
        "summary": policy.summary,
        "paper": policy.paper,
        "seeks": policy.seeks,
        "horizon": "horizon" in policy.declared,
        "parameters": {
            parameter.name: {
                "symbol": parameter.symbol,
                "default": parameter.derived[0] if parameter.derived else parameter.default,
                "required": parameter.required,
                "allowed": parameter.allowed,
                "meaning": parameter.meaning,
            }
            for parameter in policy.declared.values()
        },
    }
