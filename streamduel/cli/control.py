"""The command `streamduel control`: one control record, written to the log among the data."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Annotated, Final, get_args

import msgspec
import typer

from streamduel import logging as log_lines
from streamduel.config import LoadedConfig, load
from streamduel.errors import ConfigurationError, UncertainError, nearest
from streamduel.records import Action, Control, Rejected
from streamduel.stream.decode import RecordDecoder

ACTIONS: Final[dict[str, Action]] = {name.replace("_", "-"): name for name in get_args(Action)}
"""What an action is called on the command line, and in a record."""

ARMS_OF: Final = {"add-arm": 1, "retire-arm": 1, "freeze-pair": 2}
"""How many arms an action is about; the others mean the whole experiment."""

ConfigPath = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.", show_default=False),
]
ExperimentName = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="Its name there.", show_default=False)
]
ActionName = Annotated[
    str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS) + ".", show_default=False)
]
ArmName = Annotated[
    str | None,
    typer.Argument(
        metavar="ARM", help="Whom add-arm, retire-arm and freeze-pair mean.", show_default=False
    ),
]  # fmt: skip
OtherArmName = Annotated[
    str | None,
    typer.Argument(metavar="OTHER", help="The second arm of freeze-pair.", show_default=False),
]
RecordId = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="The record's id; commands with the same one are done once.  [a new one each time]",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the record, for programs.")]


def control(
    config: ConfigPath,
    experiment: ExperimentName,
    action: ActionName,
    arm: ArmName = None,
    other: OtherArmName = None,
    record_id: RecordId = None,
    as_json: AsJson = False,
) -> None:
    """Pause, resume or reset an experiment, change its arms, or freeze a pair, while it runs.

    Writes one control record to the source's log, where it takes effect in the order of the data,
    also in a replay. It does not wait for that. What cannot be done, such as to retire an arm that
    is not there, becomes a dead letter.

    The record's `ts` is the present time: on a file it moves stream time there, on Kafka the
    broker's timestamp counts.

    For example:

        streamduel control search.yaml search add-arm ltr-v4
    """
    loaded = load(config)
    log_lines.hide(loaded.source, loaded.sink, loaded.snapshots)
    if record_id is None:
        record_id = str(uuid.uuid4())
    arms = [name for name in (arm, other) if name is not None]
    _check(loaded, experiment, action, arms)
    names = zip(("a", "b") if len(arms) == 2 else ("arm",), arms, strict=False)
    record = Control(
        record_id, experiment, ACTIONS[action], ts=int(1000 * time.time()), **dict(names)
    )
    value = _encoded(record, loaded.config.limits.max_record_bytes)
    where = _append(loaded, record, value)
    if as_json:
        typer.echo(value.decode())
        return
    done = " ".join([action, *(f"'{name}'" for name in arms)])
    typer.echo(
        f"Wrote {done} for experiment '{experiment}' to {where} (id {record_id}); "
        f"`streamduel inspect {config}` shows its effect, or one more dead letter if it cannot be "
        f"done."
    )


def _append(loaded: LoadedConfig, record: Control, value: bytes) -> str:
    """Write the record; where it stands."""
    try:
        return loaded.source_connector.append(loaded.source, record.experiment.encode(), value)
    except UncertainError as error:
        raise UncertainError(
            f"{error} Repeat the command with --id {record.id}: it is then done once, even if it "
            f"was written before."
        ) from error


def _check(loaded: LoadedConfig, experiment: str, action: str, arms: list[str]) -> None:
    """Refuse what would certainly become a dead letter."""
    experiments = loaded.config.experiments
    if experiment not in experiments:
        known = ", ".join(f"'{name}'" for name in sorted(experiments))
        hint = nearest(experiment, experiments) or "."
        raise ConfigurationError(
            f"unknown experiment '{experiment}'{hint} Configured: {known}."
        )  # fmt: skip
    if action not in ACTIONS:
        raise ConfigurationError(
            f"ACTION must be one of {', '.join(ACTIONS)} (found '{action}')"
            f"{nearest(action, ACTIONS) or '.'}"
        )
    wanted = ARMS_OF.get(action, 0)
    if len(arms) < wanted:
        needs = "an ARM: whom it means" if wanted == 1 else "two arms, ARM and OTHER"
        raise ConfigurationError(f"{action} needs {needs}.")
    if len(arms) > wanted:
        means = "one arm" if wanted else "the whole experiment"
        found = f"takes no {'second ' if wanted else ''}ARM (found '{arms[wanted]}')"
        raise ConfigurationError(f"{action} {found}: it means {means}.")
    if wanted == 2 and arms[0] == arms[1]:
        raise ConfigurationError(f"{action} needs two arms (found '{arms[0]}' twice).")


def _encoded(record: Control, max_bytes: int) -> bytes:
    """The record as JSON, just as the stream will accept it."""
    try:
        value = msgspec.json.encode(record)
    except UnicodeEncodeError:
        raise ConfigurationError("ARM and --id must be UTF-8.") from None
    try:
        RecordDecoder(max_bytes)(value)
    except Rejected as refused:
        raise ConfigurationError(refused.sentence) from None
    return value
