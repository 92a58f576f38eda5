"""`streamduel replay`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import typer
from rich.console import Console

from streamduel.cli.app import FAILURE, err, out, plain, say
from streamduel.cli.arguments import (
    AsJson,
    ConfigPath,
    Quiet,
    errors_as_json,
    load_config,
    print_json,
)
from streamduel.cli.progress import counting_progress
from streamduel.config import LoadedConfig
from streamduel.errors import counted
from streamduel.stream import replay as audit


def replay(config: ConfigPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Fold the click log again and compare every assignment with the published one.

    Exits with 0 when all are equal; else shows the first difference and exits with 1. Assignments
    that differ only in `offset`, `ts` or `valid_until`, as those of an earlier release may, do not
    end the replay: it also shows their number, and whether the states are equal.
    """
    with errors_as_json(as_json):
        verdict = _audit(load_config(config), Console(quiet=True) if quiet else err)
    if as_json:
        print_json({"equal": verdict.difference is None, **asdict(verdict)})
    elif verdict.difference or not quiet:
        _print(verdict)
    if verdict.difference:
        raise typer.Exit(FAILURE)


def _audit(loaded: LoadedConfig, console: Console) -> audit.Verdict:
    with (
        closing(loaded.open_log()) as log,
        closing(loaded.open_archive()) as archive,
        counting_progress(console, "replaying") as progress,
    ):
        return audit.replay(loaded.config, log, archive, progress)


def _print(verdict: audit.Verdict) -> None:
    for name in verdict.unchecked:
        say(err, plain(f"'{name}' was removed and cannot be folded again; it was not checked."))
    if verdict.difference:
        say(out, plain(verdict.difference))
        if verdict.states_equal:
            say(
                out,
                f"{counted(verdict.dated, 'assignment')} with another offset, ts or valid_until "
                f"only, as an earlier release may publish; "
                f"{counted(verdict.assignments, 'assignment')} equal, states equal.",
            )
        return
    say(
        out,
        f"{counted(verdict.records, 'record')} folded again, "
        f"{counted(verdict.assignments, 'assignment')} equal, states equal.",
    )
