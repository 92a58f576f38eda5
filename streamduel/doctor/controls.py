"""What `streamduel doctor` finds out about the control topic and the newest snapshots."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from streamduel.config import LoadedConfig
from streamduel.diagnosis import Finding
from streamduel.errors import ConnectorError
from streamduel.stream import control_order, snapshot

POLL_SECONDS: Final = 0.2

READ_SECONDS: Final = 10.0


def check_controls(loaded: LoadedConfig, saved: Mapping[int, snapshot.Saved]) -> Iterator[Finding]:
    """Whether the control topic has the records that took effect; the connector checks the rest."""
    applied = {
        partition: it.partition.control.next
        for partition, it in saved.items()
        if it.partition.control is not None and it.partition.control.next
    }
    if loaded.config.control_topic is None or not applied:
        return
    try:
        with closing(loaded.open_controls()) as log:
            deadline = time.monotonic() + READ_SECONDS
            while not log.poll(POLL_SECONDS).gained and time.monotonic() < deadline:
                pass
            for partition, offset in applied.items():
                control_order.check_end(log, partition, offset)
    except ConnectorError as error:
        yield Finding("source.control_topic", "failed", str(error))
