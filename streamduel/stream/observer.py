"""What the runner tells to whoever watches it: metrics, a progress bar, a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamduel.connector import PartitionCommit
from streamduel.stream.task import PartitionTask


class Observer:
    """Is told what happened, after it happened; the runner's own does nothing.

    Every method is called from the runner's thread and must return at once. The tasks handed
    over may be read during the call only: the fold goes on with them afterwards.
    """

    def turned(self) -> None:
        """The runner's loop has gone round once more: it is alive."""

    def polled(self, records: int) -> None:
        """A poll of the source brought that many records."""

    def connection(self, *, source: bool) -> None:
        """The log can be reached at present, or it cannot."""

    def gained(self, partitions: Sequence[int]) -> None:
        """These partitions were given to this process; their states are being read."""

    def restored(self, task: PartitionTask) -> None:
        """A partition was gained and its state is in memory."""

    def lost(self, partitions: Sequence[int]) -> None:
        """These partitions belong to somebody else now, or are to be restored again."""

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:
        """The work of these partitions has become visible; the commit took that long."""

    def published(self, commits: Sequence[PartitionCommit]) -> None:
        """What these commits put out, dead letters too, can be read by everybody now."""

    def fenced(self) -> None:
        """A commit came to nothing; its work will be done again from the last visible state."""

    def lagging(self, lags: Mapping[int, int]) -> None:
        """How many records of each partition are not folded yet."""
