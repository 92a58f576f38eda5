"""Applies the records of the control topic at their markers in the click log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from streamduel.connector import ControlMarker, LogRecord
from streamduel.records import Rejected

if TYPE_CHECKING:
    from streamduel.stream.routing import Router


class Controlled(NamedTuple):
    """A record of the control topic as a `LogRecord`, at its marker's place in the click log."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | Rejected | None


def apply_controls(
    marker: ControlMarker, router: Router, now: int
) -> list[tuple[LogRecord, Rejected]]:
    """Apply the records of a marker that are not applied yet; without any it is a duplicate.

    Their ids are not in the dedupe window, which recovery rebuilds from the click log alone:
    `ControlOrder` remembers the last ones.

    Args:
        marker: the marker.
        router: decodes the records and finds their experiments.
        now: stream time.

    Returns:
        The records that become dead letters.
    """
    due = list(router.controls.due(marker))
    rejected: list[tuple[LogRecord, Rejected]] = []
    if marker.skipped:
        return rejected
    for control in due:
        record = Controlled(marker.offset, marker.timestamp, control.key, control.value)
        try:
            _apply(record, router, now)
        except Rejected as verdict:
            rejected.append((record, router.controls.placed(verdict, control.offset)))
    if not due:
        experiment = router.experiments.get((marker.key or b"").decode(errors="replace"))
        if experiment is not None:
            experiment.outcomes.duplicate += 1
    return rejected


def _apply(record: Controlled, router: Router, now: int) -> None:
    event = router.decode(record.value)
    experiment = router.find(event)
    router.controls.check_topic(event, record.offset)
    code = experiment.coder.code(event)
    if router.controls.repeats(event):
        experiment.outcomes.duplicate += 1
    else:
        experiment.apply(event, code, 0, record, now)
