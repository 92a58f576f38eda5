"""`streamduel control apply`: applies a changed configuration to the running experiments."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from streamduel.cli.app import FAILURE, INTERRUPTED, err, say
from streamduel.cli.arguments import AsJson, ConfigPath, load_config
from streamduel.cli.changes import NOT_STARTED, Change, read_changes
from streamduel.cli.control import ActorName, check_enabled, show, write
from streamduel.config import LoadedConfig
from streamduel.errors import ConfigurationError, StreamduelError, UncertainError, counted
from streamduel.records import Control

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write the records without asking.")]


def apply(
    config: ConfigPath, yes: Yes = False, actor: ActorName = None, as_json: AsJson = False
) -> None:
    """Apply a changed configuration to the running experiments.

    Shows how CONFIG differs from the settings with which the experiments run, according to the
    newest snapshots, and asks. Then it writes a control record for each experiment, which takes
    effect at its place in the click log, also in a replay. Counts and epochs are kept. Arms that
    CONFIG adds or leaves out join or leave. A change that an earlier record makes, which the
    service has not read yet, is not written again.

    `join_window_ms` and `max_per_client` cannot change while an experiment runs; use a new
    experiment name. Exits with 1 if something in the configuration was not applied: such a
    change, or settings that an experiment refuses. Everything else is applied.

    For example:

        streamduel control apply search.yaml
    """
    loaded = load_config(config)
    check_enabled(loaded)
    found = read_changes(loaded, after_pending=True)
    changes = found or []
    for change in changes:
        say(err, str(change))
    wanted = _wanted(changes)
    if not changes:
        unchanged = "The running experiments are as configured."
        typer.echo(NOT_STARTED if found is None else unchanged, err=as_json)
    if wanted and not yes:
        _ask(len(wanted))
        if _wanted(read_changes(loaded, after_pending=True) or []) != wanted:
            raise StreamduelError(
                "the experiments have changed since they were shown, so nothing was written; "
                "repeat the command."
            )
    if wanted:
        _write(loaded, wanted, actor, as_json=as_json)
    if not all(it.applicable for it in changes):
        raise typer.Exit(FAILURE)


def _wanted(changes: Iterable[Change]) -> list[Change]:
    """Those to write; what is pending may have taken effect meanwhile."""
    return [it._replace(pending=()) for it in changes if it.partly_applicable]


def _write(
    loaded: LoadedConfig, changes: Sequence[Change], actor: str | None, *, as_json: bool
) -> None:
    """Write a record for each change; an error or Ctrl-C in between says how many are written."""
    records = [
        Control(str(uuid.uuid4()), it.experiment, "apply", actor=actor, settings=it.settings)
        for it in changes
    ]
    done, total = 0, counted(len(records), "record")
    again = "repeat the command: it writes only what is not written yet."
    try:
        for written in write(loaded, records):
            show(written, ", ".join(changes[done].settings), ".", as_json=as_json)
            done += 1
    except KeyboardInterrupt:
        say(err, f"Interrupted with {done:,} of {total} written; {again}")
        raise typer.Exit(INTERRUPTED) from None
    except StreamduelError as error:
        if done == 0 and not isinstance(error, UncertainError):
            raise  # nothing was written
        before = f" Before, {done:,} of {total} were written." if done else ""
        raise StreamduelError(f"{error}{before} {again.capitalize()}") from error


def _ask(count: int) -> None:
    if sys.stdin is None or not sys.stdin.isatty():  # None: closed, as by `0<&-`
        raise ConfigurationError("there is no terminal for the question; --yes writes the records.")
    what = "this experiment" if count == 1 else f"these {count} experiments"
    typer.confirm(f"Apply to {what}?", abort=True, err=True)
