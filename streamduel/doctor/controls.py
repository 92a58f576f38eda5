"""What `streamduel doctor` finds out about the control topic and the newest snapshots."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from streamduel.config import LoadedConfig
from streamduel.connector import POLL_SECONDS
from streamduel.diagnosis import Finding
from streamduel.errors import ConnectorError, MissingError, counted
from streamduel.stream import control_order, snapshot_reading

READ_SECONDS: Final = 10.0
"""Timeout of opening the control topic, as of the newest records of the click log."""


def check_controls(
    loaded: LoadedConfig, saved: Mapping[int, snapshot_reading.Saved]
) -> Iterator[Finding]:
    """Which records of the control topic wait, and whether it has those that took effect.

    The connector checks the rest.
    """
    if loaded.config.control_topic is None:
        return
    applied = {partition: it.partition.control for partition, it in saved.items()}
    waiting = 0
    try:
        with closing(loaded.open_controls()) as log:
            deadline = time.monotonic() + READ_SECONDS
            while not (gained := log.poll(POLL_SECONDS).gained) and time.monotonic() < deadline:
                pass
            for partition in gained:
                entry = applied.get(partition)
                if (problem := control_order.replaced(log, partition, entry)) is not None:
                    yield Finding("source.control_topic", "failed", problem)
                    return
                log.seek(partition, entry.next if entry is not None else 0)
                waiting += log.lags([partition]).get(partition, 0)
    except MissingError as error:
        if any(it is not None and it.next for it in applied.values()):
            yield Finding("source.control_topic", "failed", str(error))
        return  # else the connector has a finding already
    except ConnectorError as error:
        yield Finding("source.control_topic", "failed", str(error))
        return
    if waiting:
        found = (
            f"{counted(waiting, 'record')} of '{log.topic}' {'has' if waiting == 1 else 'have'} "
            f"not taken effect yet; a running service applies them within seconds."
        )
        yield Finding("control records", "fine", found)
