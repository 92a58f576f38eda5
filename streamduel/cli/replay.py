"""`streamduel replay`."""

from __future__ import annotations

from contextlib import closing

import typer

from streamduel.cli.app import FAILURE, err, out
from streamduel.cli.arguments import ConfigPath, load_config
from streamduel.cli.progress import counting_progress
from streamduel.connector import SourceOptions
from streamduel.stream import replay as audit


def replay(config: ConfigPath) -> None:
    """Fold the click log again and compare every assignment with the published one.

    Exits with 0 when all are equal; else shows the first difference and exits with 1.
    """
    loaded = load_config(config)
    options = SourceOptions(True, loaded.config.limits.max_batch_bytes)
    with (
        closing(loaded.source_connector.open_log(loaded.source, options)) as log,
        closing(loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)) as archive,
        counting_progress(err, "replaying") as progress,
    ):
        verdict = audit.replay(loaded.config, log, archive, progress)
    for name in verdict.unchecked:
        err.print(
            f"'{name}' is no longer configured and was not checked.",
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
