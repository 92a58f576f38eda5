"""Applies the records of the control topic at their markers in the click log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from streamduel.connector import ControlMarker, LogRecord
from streamduel.records import Rejected

if TYPE_CHECKING:
    from streamduel.stream.experiment import Experiment
    from streamduel.stream.routing import Router


class Controlled(NamedTuple):
    """A record of the control topic as a `LogRecord`, at its marker's place in the click log."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | Rejected | None


class MarkedControls:
    """Applies the control records that a marker names.

    Their ids are not in the dedupe window, which recovery rebuilds from the click log alone:
    `ControlOrder` remembers the last ones.

    Args:
        router: decodes them.
        experiments: those of the partition, by name.
    """

    __slots__ = ("_experiments", "_router")

    def __init__(self, router: Router, experiments: Mapping[str, Experiment]) -> None:
        self._router = router
        self._experiments = experiments

    def fold(self, marker: ControlMarker, now: int) -> list[tuple[LogRecord, Rejected]]:
        """Apply the records of a marker that are not applied yet; without any it is a duplicate.

        Args:
            marker: the marker.
            now: stream time.

        Returns:
            The records that become dead letters.
        """
        due = list(self._router.controls.due(marker))
        rejected: list[tuple[LogRecord, Rejected]] = []
        if marker.skipped:
            return rejected
        for control in due:
            record = Controlled(marker.offset, marker.timestamp, control.key, control.value)
            try:
                self._apply(record, now)
            except Rejected as verdict:
                placed = self._router.controls.placed(verdict, control.offset)
                rejected.append((record, placed))
        if not due:
            experiment = self._experiments.get((marker.key or b"").decode(errors="replace"))
            if experiment is not None:
                experiment.outcomes.duplicate += 1
        return rejected

    def _apply(self, record: Controlled, now: int) -> None:
        event = self._router.decode(record.value)
        if event.experiment not in self._experiments:
            raise self._router.unknown(event)
        experiment, controls = self._experiments[event.experiment], self._router.controls
        controls.check_topic(event, record.offset)
        code = experiment.coder.code(event)
        if controls.repeats(event):
            experiment.outcomes.duplicate += 1
        else:
            experiment.apply(event, code, 0, record, now)
