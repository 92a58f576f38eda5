"""The control topic of a simulated process: what the Kafka connector does, on the model.

The owner of a partition appends a marker to the click log for each record of the control topic.
Nothing is in a transaction: a marker may be lost, come late, or be written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from streamduel.connector import ControlMarker, ControlRecord, LogRecord
from streamduel.control_markers import Marker, digest, marker_in
from streamduel.testing.simulation.cluster import NotReady
from streamduel.testing.simulation.network import Network, Unreachable

if TYPE_CHECKING:
    from streamduel.testing.records import Record


def marker_of(control: ControlRecord, id_: str) -> bytes:
    """The marker of a control record."""
    marker = Marker(id_, "", control.offset, digest(control.value))  # of any experiment
    return msgspec.json.encode(marker)


def is_marker_of(marker: Marker, controls: Sequence[ControlRecord]) -> bool:
    """Whether a marker names a record of the control topic; offsets there count from 0."""
    offset = marker.control_offset
    return 0 <= offset < len(controls) and marker.digest == digest(controls[offset].value)


def resolved(
    records: Sequence[Record], controls: Sequence[ControlRecord]
) -> list[Record | ControlMarker]:
    """A partition of the click log, complete, with its control records at their markers."""
    found: list[Record | ControlMarker] = []
    following = 0
    for record in records:
        marker = marker_in(record)
        if marker is None or (
            marker.control_offset >= following and not is_marker_of(marker, controls)
        ):
            found.append(record)
            continue
        due = tuple(controls[following : marker.control_offset + 1])
        following += len(due)
        found.append(ControlMarker(record.offset, record.timestamp, record.key, due))
    return found


@dataclass
class _Partition:
    """Offsets of the control topic: what is delivered, marked by this process, and read."""

    next: int
    marked: int
    read: int
    records: dict[int, ControlRecord] = field(default_factory=dict)


class SimulatedControls:
    """Reads the control topic, writes markers, and resolves them.

    Args:
        network: the connection of the process.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._cluster = network.cluster
        self._partitions: dict[int, _Partition] = {}

    def seek(self, partition: int, offset: int) -> None:
        """Deliver the control records of a partition from this offset on."""
        self._partitions[partition] = _Partition(offset, offset, offset)

    def keep(self, partitions: Sequence[int]) -> None:
        """Forget all partitions but these."""
        self._partitions = {it: self._partitions[it] for it in partitions if it in self._partitions}

    def look(self) -> None:
        """Read new control records, and write a marker for each."""
        cluster = self._cluster
        for number, partition in self._partitions.items():
            try:
                found = self._network.request(
                    "read controls",
                    lambda number=number, since=partition.read: cluster.read_controls(  # type: ignore[misc]
                        number, since
                    ),
                )
                partition.records.update((control.offset, control) for control in found)
                partition.read += len(found)
                self._forward(number, partition)
            except (Unreachable, NotReady):
                continue

    def _forward(self, number: int, partition: _Partition) -> None:
        for control in list(partition.records.values()):
            if control.offset >= partition.marked:
                value = marker_of(control, f"control-{number}@{control.offset}")
                self._network.request(
                    "write marker",
                    lambda control=control, value=value: self._cluster.append(  # type: ignore[misc]
                        number, control.key, value
                    ),
                )
                partition.marked = control.offset + 1

    def merge(
        self, records: Mapping[int, Sequence[Record]], rewind: Callable[[int, int], None]
    ) -> dict[int, Sequence[LogRecord]]:
        """Replace each marker by a `ControlMarker`.

        A marker whose control record is not read yet holds its partition back: `rewind` is called
        with the partition and the marker's offset, from which to deliver again.
        """
        merged: dict[int, Sequence[LogRecord]] = {}
        for number, batch in records.items():
            delivered: list[LogRecord] = []
            for record in batch:
                marker = marker_in(record)
                found = "unknown" if marker is None else self._resolve(number, marker)
                if found == "waits":
                    rewind(number, record.offset)
                    break
                known: LogRecord = record
                if not isinstance(found, str):
                    known = ControlMarker(record.offset, record.timestamp, record.key, found)
                delivered.append(known)
            if delivered:
                merged[number] = delivered
        return merged

    def _resolve(
        self, number: int, marker: Marker
    ) -> Sequence[ControlRecord] | Literal["waits", "unknown"]:
        partition = self._partitions[number]
        if marker.control_offset < partition.next:
            return ()
        if marker.control_offset >= partition.read:
            written = self._cluster.control_high[number]
            return "waits" if marker.control_offset < written else "unknown"
        if not is_marker_of(marker, self._cluster.controls[number]):
            return "unknown"
        due = [it for it in partition.records.values() if it.offset <= marker.control_offset]
        for control in due:
            del partition.records[control.offset]
        partition.next = marker.control_offset + 1
        return due
