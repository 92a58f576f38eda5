"""Whether the lines of a file are records, and whether their times or their order lose clicks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from streamduel.errors import StreamduelError, counted
from streamduel.stream.alarms import TOLERATED
from streamduel.stream.experiment import Experiment
from streamduel.stream.inspection import Report
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)


class LostClicks(NamedTuple):
    """How many of an experiment's clicks the order of the lines has lost."""

    lost: int
    clicks: int

    @classmethod
    def of(cls, experiment: Experiment) -> LostClicks:
        """Those of an experiment: a click that came late may still have found its impression."""
        order, outcomes = experiment.out_of_order, experiment.outcomes
        return cls(min(order.lost, outcomes.late + outcomes.unjoined), order.clicks)


class FileOrder(Observer):
    """Remembers stream time, and of each experiment the clicks that the order has lost."""

    def __init__(self) -> None:
        self._found: dict[str, LostClicks] = {}
        self._stream_time = 0

    def restored(self, task: PartitionTask) -> None:
        """Note what earlier runs have lost."""
        self._found.update({name: LostClicks.of(it) for name, it in task.experiments.items()})
        self._stream_time = task.stream_time

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Note the newest counts."""
        for task in tasks:
            self.restored(task)

    def check(self, report: Report) -> None:
        """Check that join windows close, and that few clicks were lost; warn if no record counts.

        Args:
            report: on the newest snapshots.

        Raises:
            StreamduelError: they do not; of lost clicks, with the experiment that lost the largest
                share.
        """
        _warn_of_unusable(report)
        self._check_times(report)
        self._check_order()

    def _check_times(self, report: Report) -> None:
        waiting = {name: it.open["impressions"] for name, it in report.experiments.items()}
        if self._stream_time or not any(waiting.values()):
            return
        name = max(waiting, key=lambda each: waiting[each])
        raise StreamduelError(
            f"no record has a timestamp, so that no join window has closed "
            f"({counted(waiting[name], 'open impression')} of experiment '{name}'), and clicks "
            f"made no duels. Give the records a timestamp, `ts`, and start with an empty state, "
            f"or use `streamduel analyze`, which needs none."
        )

    def _check_order(self) -> None:
        wrong = {
            name: found
            for name, found in sorted(self._found.items())
            if found.lost > TOLERATED * found.clicks
        }
        if not wrong:
            return
        name = max(wrong, key=lambda each: wrong[each].lost / wrong[each].clicks)
        lost, clicks = wrong[name]
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise StreamduelError(
            f"the order of the lines lost {lost:,} of {clicks:,} clicks of experiment '{name}'"
            f"{others}: impressions and clicks are apart in the file, so that join windows had "
            f"closed. The result is wrong. Sort the lines by time and start with an empty state, "
            f"or use `streamduel analyze`, which reads any order."
        )


def _warn_of_unusable(report: Report) -> None:
    """Log a warning if all records became dead letters."""
    used = sum(report.ignored.values()) + sum(
        sum(each.tallies.values()) - each.tallies["dead_letter"] + sum(each.open.values())
        for each in report.experiments.values()
    )
    refused = sum(report.dead_letters.values())
    if used or not refused:
        return
    log.warning(
        "no usable record", dead_letters=dict(report.dead_letters),
        advice="`run` reads JSON Lines, by default streamduel's own records; `streamduel analyze` "
        "reads CSV, Parquet and other tables, too",
    )  # fmt: skip
