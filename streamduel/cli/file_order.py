"""Whether clicks are lost because the lines of a file are not in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamduel.errors import StreamduelError
from streamduel.stream.disorder import Disorder
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

TOLERATED: Final = 0.01
"""The share of clicks that may be lost, as in the data checks: it changes no result that is worth
acting on."""


class FileOrder(Observer):
    """Remembers, of each experiment, the clicks that the order of the file has lost."""

    def __init__(self) -> None:
        self._found: dict[str, Disorder] = {}

    def restored(self, task: PartitionTask) -> None:
        """Note what earlier runs have lost."""
        self._found.update({name: it.disorder for name, it in task.experiments.items()})

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Note the newest counts."""
        for task in tasks:
            self.restored(task)

    def check(self) -> None:
        """Check that the order has cost no experiment more than 1 % of its clicks.

        Raises:
            StreamduelError: it has; with the experiment that lost the largest share.
        """
        wrong = {
            name: found
            for name, found in sorted(self._found.items())
            if found.lost > TOLERATED * found.clicks
        }
        if not wrong:
            return
        name = max(wrong, key=lambda each: wrong[each].lost / wrong[each].clicks)
        lost, clicks = wrong[name].lost, wrong[name].clicks
        others = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise StreamduelError(
            f"the order of the lines lost {lost:,} of {clicks:,} clicks of experiment '{name}'"
            f"{others}: impressions and clicks are apart in the file, so that join windows had "
            f"closed. The result is wrong. Sort the lines by time and start with an empty state, "
            f"or use `streamduel analyze`, which reads any order."
        )
