"""What `streamduel repair` opens: the click log, the snapshots, and the partitions to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Final

from streamduel.config import LoadedConfig
from streamduel.connector import POLL_SECONDS, Outlet, Snapshot, Source, SourceOptions, no_failpoint
from streamduel.errors import ConnectorError, MissingError
from streamduel.stream import control_order
from streamduel.stream.snapshot_reading import Saved

OWN_SECONDS: Final = 60.0
"""A process that has ended keeps its partitions until its session times out, by default after 45 s;
then the group assigns them again, which takes some seconds."""

Load = Callable[[int], Snapshot | None]


def open_log(loaded: LoadedConfig) -> Source:
    """The click log; without its control topic if that does not exist yet.

    Raises:
        MissingError: there is no click log. `streamduel run` is no way to create it: with new
            snapshots it would begin with nothing.
    """
    without = {"control_topic": None}
    for changed in ({}, without) if loaded.config.control_topic is not None else ({},):
        try:
            return loaded.open_log(**changed)
        except MissingError as error:
            if not error.created_by_run:
                raise
    raise MissingError(
        f"source.topic '{getattr(loaded.source, 'topic', '')}' does not exist; create it before "
        f"the repair, without 'streamduel run', which could begin with nothing.",
        created_by_run=False,
    )


def reader(loaded: LoadedConfig, stack: ExitStack) -> Load:
    """Loads snapshots; there are none if their topic does not exist yet."""
    try:
        opened = loaded.open_archive()
    except MissingError as error:
        if not error.created_by_run:
            raise
        return lambda _: None
    return stack.enter_context(closing(opened)).load


def has_new_controls(loaded: LoadedConfig, saved: Mapping[int, Saved]) -> bool:
    """Whether the control topic is not the one whose records took effect, or was recreated."""
    applied = {
        partition: it.partition.control
        for partition, it in saved.items()
        if it.partition.control is not None and it.partition.control.topic is not None
    }
    if loaded.config.control_topic is None or not applied:
        return False
    if any(it.topic != loaded.config.control_topic for it in applied.values()):
        return True
    try:
        controls = loaded.open_controls()
    except MissingError as error:
        if not error.created_by_run:
            raise
        return True
    with closing(controls):
        gain(controls)
        return any(
            control_order.replaced(controls, partition, it) is not None
            for partition, it in applied.items()
        )


def gain(log: Source) -> None:
    """Wait for the partitions of a log that is read without a group."""
    while not log.poll(POLL_SECONDS).gained:
        pass


def own(loaded: LoadedConfig, partition: int | None, stack: ExitStack) -> tuple[Source, Outlet]:
    """Join the group, or lock the files, and wait for the partitions."""
    settings = loaded.source
    if getattr(settings, "instance", None) is not None:
        # With the name of a running process, this one would take over its partitions.
        settings = settings.model_copy(update={"instance": None})
    options = SourceOptions(
        until_end=True, max_batch_bytes=loaded.config.limits.max_batch_bytes, alone=OWN_SECONDS
    )
    source = stack.enter_context(closing(loaded.source_connector.open_source(settings, options)))
    outlet = stack.enter_context(
        closing(
            loaded.outlet_connector.open_outlet(loaded.sink, loaded.snapshots, source, no_failpoint)
        )
    )
    wanted = set(range(source.partitions)) if partition is None else {partition}
    owned: set[int] = set()
    deadline = time.monotonic() + OWN_SECONDS
    while not wanted <= owned:
        poll = source.poll(POLL_SECONDS)
        owned = (owned - set(poll.lost)) | set(poll.gained)
        missing = wanted - owned
        if missing and time.monotonic() > deadline:
            raise ConnectorError(
                f"another process owns partition {min(missing)} of '{source.topic}'; stop "
                f"all processes of the service first."
            )
    return source, outlet
