"""Which control records count in a partition, and which of the control topic are applied."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import structs

from streamduel.config.model import ControlOrigin
from streamduel.connector import ControlMarker, ControlRecord, Source
from streamduel.errors import WAY_ON, SnapshotError, control_topic_cut_off, shown
from streamduel.records import Control, InputEvent, Rejected

REMEMBERED: Final = 100
"""Ids of control records that are remembered: a person repeats a command of uncertain outcome
within minutes, and hardly a hundred actions later."""

OFF: Final = "control records are switched off (limits.control_records: false)."


class ControlEntry(msgspec.Struct, frozen=True):
    """The part of a partition's snapshot entry that belongs to control records.

    Attributes:
        topic: the control topic; None if there has been none.
        next: the first offset of the control topic whose record is not applied.
        origins: from which offset of the click log on which control records count.
        ids: digests of the ids that were applied last, the oldest first.
        log_id: of the control topic; None if it has none, and if an earlier release wrote this.
    """

    topic: str | None
    next: int
    origins: list[tuple[int, ControlOrigin]]
    ids: list[str]
    log_id: str | None = None


class ControlOrder:
    """The order of the control records of a partition.

    The click log alone has the order: a control record of the control topic is applied where the
    click log has the marker with its offset. Each is applied at most once and in order: a marker
    whose offset was passed before is a duplicate.

    Where control records come from is a setting that may change. The offset of each change is part
    of the state, so that recovery and replay treat older records as the service did.

    Args:
        origin: where control records come from, as configured.
        topic: the configured control topic.

    Attributes:
        next: the first offset of the control topic whose record is not applied.
    """

    def __init__(self, origin: ControlOrigin, topic: str | None) -> None:
        self._origin = origin
        self._topic = topic
        self._log_id: str | None = None
        self.next = 0
        self.origins: list[tuple[int, ControlOrigin]] = [(0, origin)]
        self._ids: deque[str] = deque(maxlen=REMEMBERED)

    def restore(self, entry: ControlEntry | None, offset: int) -> None:
        """Continue at an offset of the click log from a snapshot.

        Raises:
            SnapshotError: the control topic is another one now.
        """
        self.origins = [(0, "log")]
        if entry is not None:
            check_topic(entry, self._topic)
            self._topic = self._topic or entry.topic
            self.next = entry.next
            self._log_id = entry.log_id
            self.origins = list(entry.origins)
            self._ids.extend(entry.ids)
        if self.origins[-1][1] != self._origin:
            self.origins.append((offset, self._origin))

    def continue_in(self, log_id: str | None) -> None:
        """Continue in the control topic of this id, as `ControlledSource.seek_control` returns it.

        Raises:
            SnapshotError: the topic was deleted and created again after records were applied.
        """
        if self.next and differ(self._log_id, log_id):
            assert self._topic is not None
            raise SnapshotError(recreated(self._topic, self._log_id, log_id))
        self._log_id = log_id or self._log_id

    def judge_as(self, entry: ControlEntry | None) -> None:
        """Treat the whole click log as the service did that wrote this entry, for a replay.

        Raises:
            SnapshotError: the service applied records of a control topic that is not configured.
        """
        self.origins = [(0, "log")] if entry is None else list(entry.origins)
        if entry is not None and entry.next and entry.topic != self._topic:
            raise SnapshotError(
                f"the click log refers to control records of the topic '{entry.topic}'; a replay "
                f"needs it as source.control_topic (found {shown(self._topic)})."
            )

    def entry(self) -> ControlEntry | None:
        """The part of the snapshot; None if all control records came in the click log."""
        if self.origins == [(0, "log")]:
            return None
        return ControlEntry(self._topic, self.next, self.origins, list(self._ids), self._log_id)

    def origin_at(self, offset: int) -> ControlOrigin:
        """Where the control records at an offset of the click log come from."""
        return next(origin for since, origin in reversed(self.origins) if since <= offset)

    def takes_marker(self, offset: int) -> bool:
        """Whether a marker at an offset of the click log brings its record: with a control topic.

        Where there was none it is a dead letter, and its record gets another marker later.
        """
        return self.origin_at(offset) != "log"

    def check(self, event: InputEvent, offset: int) -> None:
        """Refuse a control record of the click log that does not count.

        Raises:
            Rejected: control records are off, or come from the control topic.
        """
        if not isinstance(event, Control):
            return
        origin = self.origin_at(offset)
        if origin == "topic":
            raise Rejected(
                "invalid_record",
                f"control records come from source.control_topic '{self._topic}' (found one in the "
                f"click log); `streamduel control` writes them there.",
            )
        if origin == "off":
            raise Rejected("invalid_record", OFF)

    def check_topic(self, event: InputEvent, offset: int) -> None:
        """Refuse a record of the control topic that does not count.

        Raises:
            Rejected: it is no control record, or control records are off.
        """
        if not isinstance(event, Control):
            raise Rejected(
                "invalid_record",
                f"the control topic '{self._topic}' takes control records only (found a "
                f"'{type(event).__struct_config__.tag}').",
            )
        if self.origin_at(offset) == "off":
            raise Rejected("invalid_record", OFF)

    def placed(self, verdict: Rejected, offset: int) -> Rejected:
        """The verdict on a record of the control topic, with its place there."""
        where = f"offset {offset} of the control topic '{self._topic}'"
        sentence = f"{verdict.sentence.removesuffix('.')} ({where})."
        return type(verdict)(verdict.reason, sentence)

    def due(self, marker: ControlMarker) -> Iterator[ControlRecord]:
        """The records of a marker that are not applied yet, in order; each is applied now."""
        for control in marker.controls:
            if control.offset >= self.next:
                self.next = control.offset + 1
                yield control

    def repeats(self, event: InputEvent) -> bool:
        """Whether a control record of the same id was applied not long ago; else remember it."""
        text = f"{event.experiment}\0{event.id}".encode()
        digest = hashlib.sha256(text).hexdigest()[:32]
        if digest in self._ids:
            return True
        self._ids.append(digest)
        return False


def check_topic(entry: ControlEntry | None, topic: str | None) -> None:
    """Refuse another control topic than the one to whose records the click log refers.

    Raises:
        SnapshotError: it is another one.
    """
    if entry is not None and entry.next and topic not in (None, entry.topic):
        raise SnapshotError(
            f"source.control_topic must stay '{entry.topic}' (found '{topic}'): the click log "
            f"refers to its records. Restore it. {WAY_ON}"
        )


def differ(former: str | None, found: str | None) -> bool:
    """Whether two ids are known and not the same."""
    return None not in (former, found) and former != found


def recreated(topic: str, former: str | None, found: str | None) -> str:
    """The sentence about a control topic with another id than before."""
    return (
        f"source.control_topic '{topic}' was deleted and created again: its id was {former} (found "
        f"{found} now). {WAY_ON}"
    )


def replaced(log: Source, partition: int, entry: ControlEntry | None) -> str | None:
    """Why a control topic is not the one whose records were applied; None if it is.

    Args:
        log: the control topic, read as a click log; its partition has been gained.
        partition: the partition.
        entry: the entry of its snapshot.
    """
    if entry is None or not entry.next:
        return None
    end = log.seek(partition, None) + log.lags([partition]).get(partition, entry.next)
    if end < entry.next:
        return control_topic_cut_off(log.topic, partition, end, entry.next)
    former, found = entry.log_id, log.log_id(partition)
    return recreated(log.topic, former, found) if differ(former, found) else None


def moved(entry: ControlEntry | None, *, same_controls: bool) -> ControlEntry | None:
    """The entry of a state that continues in another click log.

    Args:
        entry: the entry so far.
        same_controls: whether the offsets of the control topic still mean the same records; if
            not, a control topic is read from its beginning.
    """
    if entry is None:
        return None
    origins = [(0, entry.origins[-1][1])]
    if same_controls:
        return structs.replace(entry, origins=origins)
    return ControlEntry(None, 0, origins, entry.ids)
