"""`streamduel validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from streamduel.cli.app import out, say
from streamduel.cli.arguments import (
    AsJson,
    ConfigPath,
    Quiet,
    load_config,
    print_json,
    sentences,
)
from streamduel.config import LoadedConfig
from streamduel.errors import StreamduelError, counted

if TYPE_CHECKING:
    from streamduel.cli.changes import Change

AgainstState = Annotated[
    bool,
    typer.Option(
        "--against-state",
        help="Also compare with the newest snapshots: what `streamduel control apply` would change"
        " in running experiments.",
    ),
]


class Validity(msgspec.Struct, frozen=True):
    """What `validate --json` prints.

    Attributes:
        valid: whether the service would start with the configuration.
        errors: why not, a sentence each.
        experiments: the number of experiments; None if it is not valid.
        differences: by experiment, what differs from its present settings; None if not asked for.
        refused: by experiment, why it cannot continue, or cannot take its settings.
        snapshots: why the newest snapshots cannot be compared with; None if they can.
    """

    valid: bool
    errors: list[str]
    experiments: int | None = None
    differences: dict[str, list[str]] | None = None
    refused: dict[str, str] | None = None
    snapshots: str | None = None


def validate(
    config: ConfigPath,
    against_state: AgainstState = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a configuration without starting anything."""
    try:
        loaded = load_config(config)
    except StreamduelError as error:
        if as_json:
            print_json(Validity(valid=False, errors=sentences(error)))
        raise
    count = len(loaded.config.experiments)
    try:
        changes, not_started = _read_changes(loaded) if against_state else ([], None)
    except StreamduelError as error:
        if as_json:
            print_json(Validity(True, [], count, snapshots="\n".join(sentences(error))))
        raise
    if as_json:
        differences = {it.experiment: [str(each) for each in it.differences] for it in changes}
        refused = {it.experiment: it.refused for it in changes if it.refused}
        compared = (differences, refused, not_started) if against_state else ()
        print_json(Validity(True, [], count, *compared))
        return
    if quiet:
        return
    lines = [
        f"{config} is valid: {counted(count, 'experiment')}, "
        f"{loaded.config.source['connector']} to {loaded.config.sink['connector']}."
    ]
    if changes:
        lines += [
            "It differs from the running experiments, which run on as recorded; "
            f"`streamduel control apply {config}` {_applies(changes)}:",
            *map(str, changes),
        ]
    elif against_state:
        lines.append(not_started or "The running experiments are as configured.")
    say(out, "\n".join(lines))


def _applies(changes: list[Change]) -> str:
    if all(it.applicable for it in changes):
        return "applies it"
    some = any(it.partly_applicable for it in changes)
    return "applies a part of it" if some else "applies nothing of it"


def _read_changes(loaded: LoadedConfig) -> tuple[list[Change], str | None]:
    """The changes, and why there is nothing to compare with."""
    from streamduel.cli import changes  # noqa: PLC0415 - imports the whole stream

    found = changes.read_changes(loaded)
    return ([], changes.NOT_STARTED) if found is None else (found, None)
