"""`streamduel control`: writes one control record to the click log."""

from __future__ import annotations

import getpass
import os
import socket
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer
from msgspec import structs

from streamduel.cli.arguments import AsJson, ConfigPath, load_config
from streamduel.config import LoadedConfig
from streamduel.errors import ConfigurationError, UncertainError, nearest, shown
from streamduel.record_rules import ACTION_FIELDS
from streamduel.records import MAX_NAME, Action, Control, Rejected
from streamduel.stream.decode import RecordDecoder

ACTIONS: Final[dict[str, Action]] = {
    name.replace("_", "-"): name for name in ACTION_FIELDS if name != "apply"
}
"""Name of each action on the command line and in a record."""

ARGUMENTS: Final = {
    ("arm",): "an ARM",
    ("a", "b"): "two arms, ARM and OTHER",
    ("text",): "a TEXT",
}
"""The arguments of an action, by the fields of its record."""

ExperimentName = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="The experiment's name.", show_default=False)
]
ActionName = Annotated[
    str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS) + ".", show_default=False)
]
ArmName = Annotated[
    str | None,
    typer.Argument(
        metavar="ARM", help="The arm of add-arm, retire-arm and freeze-pair; the text of note."
    ),
]
OtherArmName = Annotated[
    str | None, typer.Argument(metavar="OTHER", help="The second arm of freeze-pair.")
]
LikeName = Annotated[
    str | None,
    typer.Option(
        "--like",
        metavar="OLD",
        help="With add-arm: an arm whose duels tell what to expect of the new one; they steer its"
        " first duels and are no evidence.",
        show_default=False,
    ),
]
RecordId = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="The record's id; a repeated id takes effect once.  [default: a random one]",
    ),
]
ActorName = Annotated[
    str | None,
    typer.Option(
        "--actor",
        metavar="NAME",
        help="Who acts; the application log and the timeline show it.  [default: user@host]",
    ),
]


def control(
    config: ConfigPath,
    experiment: ExperimentName,
    action: ActionName,
    arm: ArmName = None,
    other: OtherArmName = None,
    like: LikeName = None,
    record_id: RecordId = None,
    actor: ActorName = None,
    as_json: AsJson = False,
) -> None:
    """Change a running experiment: pause, resume, reset, arms, pairs; apply settings.

    Writes one control record to the click log, or to the control topic if there is one, and does
    not wait until the service has read it. The record takes effect at its place in the click log,
    also in a replay. An action that is impossible, such as retiring an unknown arm, becomes a dead
    letter.

    The record's `ts` is the present time. In a file, it advances stream time. On Kafka, the
    timestamp of the Kafka record does, except in a control topic.

    `streamduel control apply CONFIG` applies a changed configuration to the running experiments;
    `streamduel control note CONFIG EXPERIMENT TEXT` writes a note into a timeline.

    For example:

        streamduel control search.yaml search add-arm ltr-v4 --like ltr-v3
    """
    loaded = load_config(config)
    if record_id is None:
        record_id = str(uuid.uuid4())
    arms = [name for name in (arm, other) if name is not None]
    _check(loaded, experiment, action, arms)
    fields: dict[str, Any] = dict(zip(ACTION_FIELDS[ACTIONS[action]], arms, strict=True))
    if like is not None:
        _check_like(action, arm, like)
        fields["like"] = like
    record = Control(record_id, experiment, ACTIONS[action], actor=actor, **fields)
    done = " ".join([action, *(f"'{name}'" for name in arms)])
    done += "" if like is None else f" like '{like}'"
    shows = " --json` shows the timeline with it" if action == "note" else "` shows the effect"
    effect = (
        f" (id {record_id}); `streamduel inspect {config}{shows}, or one more dead "
        f"letter if the action is impossible."
    )
    try:
        [written] = write(loaded, [record])
    except UncertainError as error:
        raise UncertainError(
            f"{error} Repeat the command with --id {record.id}: the record then takes effect once, "
            f"even if it was written twice."
        ) from error
    show(written, done, effect, as_json=as_json)


class Written(NamedTuple):
    """A written control record: the experiment's name, its JSON, and where it is."""

    experiment: str
    value: bytes
    place: str


def write(loaded: LoadedConfig, records: Sequence[Control]) -> Iterator[Written]:
    """Write records with the present time, by this user if they name nobody.

    Yields each once it is written. None is written if one would become a dead letter.
    """
    now, me, max_bytes = int(1000 * time.time()), user(), loaded.config.limits.max_record_bytes
    values = [
        encoded(structs.replace(it, ts=now, actor=me if it.actor is None else it.actor), max_bytes)
        for it in records
    ]
    names = [it.experiment for it in records]
    keyed = [(name.encode(), value) for name, value in zip(names, values, strict=True)]
    places = loaded.source_connector.append(loaded.source, keyed)
    for place, name, value in zip(places, names, values, strict=True):
        yield Written(name, value, place)


def show(written: Written, done: str, effect: str, *, as_json: bool) -> None:
    """Print what was written."""
    if as_json:
        typer.echo(written.value.decode())
    else:
        typer.echo(f"Wrote {done} for experiment '{written.experiment}' to {written.place}{effect}")


def user() -> str:
    """The user and host of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container, a user may have no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"[:MAX_NAME]


def check_action(action: str, actions: Collection[str]) -> None:
    """Refuse an unknown action."""
    if action not in actions:
        raise ConfigurationError(
            f"ACTION must be one of {', '.join(actions)} (found '{action}')"
            f"{nearest(action, actions) or '.'}"
        )


def check_enabled(loaded: LoadedConfig) -> None:
    """Refuse to write control records that would not take effect.

    Raises:
        ConfigurationError: they are switched off.
    """
    if not loaded.config.limits.control_records:
        raise ConfigurationError(
            "limits.control_records must be true for a control record to take effect (found false)."
        )


def _check(loaded: LoadedConfig, experiment: str, action: str, arms: list[str]) -> None:
    """Refuse an action that would become a dead letter in any case."""
    experiments = loaded.config.experiments
    check_enabled(loaded)
    if experiment not in experiments:
        known = ", ".join(f"'{name}'" for name in sorted(experiments))
        hint = nearest(experiment, experiments) or "."
        raise ConfigurationError(
            f"unknown experiment '{experiment}'{hint} Configured: {known}."
        )  # fmt: skip
    if action == "apply":
        raise ConfigurationError(
            "apply is for all experiments and comes first: `streamduel control apply CONFIG`."
        )
    check_action(action, ACTIONS)
    needed = ACTION_FIELDS[ACTIONS[action]]
    wanted = len(needed)
    if len(arms) < wanted:
        raise ConfigurationError(f"{action} needs {ARGUMENTS[needed]}.")
    if len(arms) > wanted:
        most = "no second ARM" if wanted else "no ARM"
        most = "one TEXT, in quotes" if needed == ("text",) else most
        raise ConfigurationError(f"{action} takes {most} (found '{arms[wanted]}').")
    if wanted == 2 and arms[0] == arms[1]:
        raise ConfigurationError(f"{action} needs two arms (found '{arms[0]}' twice).")


def _check_like(action: str, arm: str | None, like: str) -> None:
    """Refuse what would become a dead letter in any case."""
    if action != "add-arm":
        raise ConfigurationError(f"--like is for add-arm (found with {action}).")
    if like == arm:
        raise ConfigurationError(f"--like must name another arm than ARM (found {shown(like)}).")


def encoded(record: Control, max_bytes: int) -> bytes:
    """The record as JSON, checked by the decoder of the service."""
    try:
        value = msgspec.json.encode(record)
    except UnicodeEncodeError as error:
        found = shown(error.object)
        raise ConfigurationError(f"every argument must be UTF-8 (found {found}).") from None
    try:
        RecordDecoder(max_bytes)(value)
    except Rejected as refused:
        # A record may have null where an argument is left out.
        raise ConfigurationError(refused.sentence.replace(", or null (", " (")) from None
    return value
