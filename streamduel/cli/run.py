"""`streamduel run`: the service."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from typing import Annotated

import structlog
import typer

from streamduel.cli import tables
from streamduel.cli.app import err, exit_status, out, say, tell
from streamduel.cli.arguments import ConfigPath, Quiet, errors_as_json, load_config, print_json
from streamduel.cli.file_order import FileOrder
from streamduel.cli.inspect import read_report
from streamduel.cli.progress import FoldProgress
from streamduel.config import LoadedConfig
from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.logging import FormatOption, LogFormat, log_uncaught, resolve_format, set_up
from streamduel.monitoring import Monitoring
from streamduel.monitoring.experiment_events import ExperimentEvents
from streamduel.monitoring.service_log import ServiceLog
from streamduel.service import StopSignal, serve
from streamduel.stream.observer import Observer

log = structlog.stdlib.get_logger(__name__)

UntilEnd = Annotated[
    bool,
    typer.Option(
        "--until-end", help="Stop with a final snapshot at the present end of the click log."
    ),
]
LogFormatOption = Annotated[
    FormatOption,
    typer.Option(
        "--log-format",
        envvar="STREAMDUEL_LOG_FORMAT",
        help="Format of the application log on standard error: text logs warnings, json also "
        "events, and auto is text on a terminal and json elsewhere.",
    ),
]

AsReport = Annotated[
    bool,
    typer.Option("--json", help="With --until-end: print the report as JSON, as `inspect` does."),
]


def run(
    context: typer.Context,
    config: ConfigPath,
    until_end: UntilEnd = False,
    log_format: LogFormatOption = "text",
    as_json: AsReport = False,
    quiet: Quiet = False,
) -> None:
    """Run the service: read clicks, update the policy, publish assignments.

    With --until-end on a file, the exit status is 1 if the order of its lines lost more than 1 % of
    the clicks, or if no record has a timestamp and impressions are open.

    SIGTERM or Ctrl-C commits what is done and exits with status 0. After any other end the next
    start continues from the last commit; no record is lost or counted twice.
    """
    form = resolve_format(log_format, sys.stderr)
    set_up(form, context.obj)
    log_uncaught()
    if quiet:
        logging.disable(logging.WARNING)
    try:
        if as_json and not until_end:
            raise ConfigurationError("--json needs --until-end; without it, there is no report.")
        order = FileOrder()
        with errors_as_json(as_json):  # not around the report: one answer is enough
            loaded = load_config(config)
            _serve(loaded, form, order, until_end=until_end, quiet=quiet)
        if until_end:
            _report(loaded, order, as_json=as_json, quiet=quiet)
    except StreamduelError as error:
        if form == "text":
            raise
        log.error("failed", error=str(error), status=exit_status(error))
        raise typer.Exit(exit_status(error)) from None


def _report(loaded: LoadedConfig, order: FileOrder, *, as_json: bool, quiet: bool) -> None:
    """Print the report, and check that the result of a file can be right."""
    report = read_report(loaded)
    if as_json:
        print_json(report)
    elif not quiet:
        tables.print_report(out, report)
        _print_folders(loaded)
    if loaded.config.source["connector"] == "files":
        order.check(report)


def _serve(
    loaded: LoadedConfig, form: LogFormat, order: FileOrder, *, until_end: bool, quiet: bool
) -> None:
    """Run the service and its observers to the end."""
    stop, service_log = StopSignal(), ServiceLog(reported=until_end)
    stop.listen()
    service_log.started(loaded)
    observers: list[Observer] = [ExperimentEvents(), service_log, order]
    why = "an error"
    with ExitStack() as stack:
        stack.callback(lambda: service_log.stopped(why))
        if loaded.config.monitoring is not None:
            monitoring = Monitoring(loaded.config.monitoring, loaded)
            observers.extend(monitoring.observers)
            host, port = monitoring.start()
            stack.callback(monitoring.stop)
            if not quiet:
                _announce(host, port, form)
        if until_end and err.is_terminal and not quiet:
            observers.append(stack.enter_context(FoldProgress(err)))
        serve(loaded, stop, until_end=until_end, observers=observers)
        why = stop.signal or "the end of the log"


def _announce(host: str, port: int, form: LogFormat) -> None:
    """Print or log the address of the monitoring, also if only warnings are logged."""
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"  # brackets for IPv6
    if form == "text":
        tell(f"status page and metrics on {url}")
    else:
        log.info("monitoring served", url=url)


def _print_folders(loaded: LoadedConfig) -> None:
    for name, settings in {"outputs": loaded.sink, "snapshots": loaded.snapshots}.items():
        folder = loaded.outlet_connector.folder(settings)
        if folder is not None:
            say(out, f"{name}: {folder.resolve()}")
