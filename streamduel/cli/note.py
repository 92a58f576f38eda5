"""`streamduel control note`: writes a note into the timeline of an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from streamduel.cli.arguments import AsJson, ConfigPath
from streamduel.cli.control import ActorName, ExperimentName, RecordId, control

Text = Annotated[
    str,
    typer.Argument(metavar="TEXT", help="The note, at most 1000 characters.", show_default=False),
]


def note(
    config: ConfigPath,
    experiment: ExperimentName,
    text: Text,
    record_id: RecordId = None,
    actor: ActorName = None,
    as_json: AsJson = False,
) -> None:
    """Write a note into the timeline of a running experiment.

    The note is a control record, and changes nothing else. The status page, `/api/record/NAME` and
    `streamduel inspect --json` show it with the actor.

    For example:

        streamduel control note search.yaml search "ltr-v2 was trained again"
    """
    control(config, experiment, "note", text, record_id=record_id, actor=actor, as_json=as_json)
