"""The command line: `streamduel --help`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from streamduel import __version__, policies, tables
from streamduel.config import LoadedConfig, load
from streamduel.control_command import control
from streamduel.errors import ConfigurationError, SnapshotError, StreamduelError
from streamduel.monitoring.chronicle import Chronicle
from streamduel.progress import FoldProgress, replay_progress
from streamduel.service import StopSignal, serve
from streamduel.simulate_command import simulate
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

MISTAKE = 2
"""Exit status of a mistake in the configuration or on the command line."""
FAILURE = 1
"""Exit status of everything else that went wrong."""

ConfigPath = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.", show_default=False),
]


def main() -> None:
    """Run the command line; a mistake is one sentence on standard error, never a traceback."""
    try:
        app()
    except (ConfigurationError, SnapshotError) as error:
        _fail(error, MISTAKE)
    except StreamduelError as error:
        _fail(error, FAILURE)


def _fail(error: StreamduelError, status: int) -> None:
    err.print(f"streamduel: {error}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(status)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"streamduel {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - handled by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )


@app.command()
def run(
    config: ConfigPath,
    until_end: Annotated[
        bool,
        typer.Option(
            "--until-end", help="Stop, with a last snapshot, at the present end of the log."
        ),
    ] = False,
) -> None:
    """Run the service: read clicks, learn, publish assignments.

    SIGTERM or Ctrl-C commits what is done and exits with status 0. Killed in any other way, it
    goes on from its last commit at the next start, and nothing is lost or counted twice.
    """
    loaded = load(config)
    stop = StopSignal()
    stop.listen()
    watchers: list[Observer] = [Chronicle()]
    server = _monitor(loaded, watchers)
    try:
        if until_end and err.is_terminal:
            with FoldProgress(err) as progress:
                serve(loaded, stop, until_end=True, observers=[*watchers, progress])
        else:
            serve(loaded, stop, until_end=until_end, observers=watchers)
    finally:
        server()
    if until_end:
        report = _report(loaded)
        tables.print_report(out, report)
        tables.print_places(out, loaded)


def _monitor(loaded: LoadedConfig, watchers: list[Observer]) -> Callable[[], None]:
    """Serve metrics and health if the configuration wants it; returns how to end that."""
    settings = loaded.config.monitoring
    if settings is None:
        return lambda: None
    from streamduel.monitoring import Monitoring  # noqa: PLC0415 - its imports cost 0.2 s

    monitoring = Monitoring(settings, loaded)
    watchers.append(monitoring.observer)
    host, port = monitoring.start()
    shown = f"[{host}]" if ":" in host else host  # an IPv6 address
    err.print(f"metrics and health on http://{shown}:{port}/", markup=False, highlight=False)
    return monitoring.stop


@app.command()
def validate(config: ConfigPath) -> None:
    """Check a configuration and start nothing."""
    loaded = load(config)
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
    loaded = load(config)
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
    loaded = load(config)
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
