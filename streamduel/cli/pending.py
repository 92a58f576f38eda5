"""Control records of settings, arms and the frozen pair that the service has not read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from streamduel.cli.app import err
from streamduel.cli.progress import counting_progress
from streamduel.config import LoadedConfig
from streamduel.connector import POLL_SECONDS, LogRecord, Source
from streamduel.errors import ConnectorError
from streamduel.formats import Ignored
from streamduel.records import Control, Rejected
from streamduel.stream import control_order
from streamduel.stream.control_order import ControlOrder
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.snapshot import PartitionEntry

ACTIONS: Final = ("apply", "add_arm", "retire_arm", "freeze_pair", "unfreeze_pair")

Pending = dict[tuple[int, str], list[Control]]
"""By partition and experiment, the records that the service will have read there, in order."""


def read_pending(loaded: LoadedConfig, entries: Mapping[int, PartitionEntry]) -> Pending:
    """The records of `ACTIONS` that were written after the newest snapshots.

    They are where `streamduel control` writes them: in the control topic, or in the click log. A
    record that will become a dead letter is among them; one with a repeated id is not.

    Args:
        loaded: the configuration.
        entries: that of each partition with a snapshot.

    Raises:
        ConnectorError: the log cannot be read.
    """
    if loaded.read_once:
        return {}
    controls = loaded.config.control_topic is not None
    decoder = RecordDecoder.of(loaded.config)
    orders = {}
    for number, entry in entries.items():
        orders[number] = ControlOrder(loaded.config.control_origin, loaded.config.control_topic)
        orders[number].restore(entry.control, entry.next)
    pending: Pending = {}
    with (
        closing(loaded.open_controls() if controls else loaded.open_log()) as log,
        counting_progress(err, "reading after the snapshots") as progress,
    ):
        for partition, record in _records(log, entries, progress, controls=controls):
            for control in _changes(decoder, record):
                if not orders[partition].repeats(control):
                    pending.setdefault((partition, control.experiment), []).append(control)
    return pending


def _next(entry: PartitionEntry, *, controls: bool) -> int:
    """The first record of the click log, or of the control topic, that is not in a snapshot."""
    if not controls:
        return entry.next
    return 0 if entry.control is None else entry.control.next


def _records(
    log: Source,
    entries: Mapping[int, PartitionEntry],
    progress: Callable[[int, int], None],
    *,
    controls: bool,
) -> Iterator[tuple[int, LogRecord]]:
    """The records of the log after those of the snapshots, with their partitions, to its end.

    Raises:
        ConnectorError: the control topic is not the one whose records were applied.
    """
    next_offsets = {number: _next(entry, controls=controls) for number, entry in entries.items()}
    done = 0
    wanted: set[int] = set()
    started = False
    while wanted or not started:
        poll = log.poll(POLL_SECONDS)
        for partition in poll.gained:
            started = True
            entry = entries.get(partition)
            if controls and entry is not None:
                problem = control_order.replaced(log, partition, entry.control)
                if problem is not None:
                    raise ConnectorError(problem)
            log.seek(partition, next_offsets.get(partition))
            if partition in next_offsets:
                wanted.add(partition)
        for partition, records in poll.records.items():
            if partition in wanted:
                done += len(records)
                for record in records:
                    yield partition, record
        progress(done, done + sum(log.lags(sorted(wanted)).values()))
        wanted = {partition for partition in wanted if not log.caught_up(partition)}


def _changes(decoder: RecordDecoder, record: LogRecord) -> Iterator[Control]:
    """The control records of these actions in a record."""
    value: Any = record.value
    if not isinstance(value, bytes) or not any(it.encode() in value for it in ACTIONS):
        return
    try:
        events = decoder.events(value)
    except (Rejected, Ignored):
        return
    for event in events:
        if isinstance(event, Control) and event.action in ACTIONS:
            yield event
