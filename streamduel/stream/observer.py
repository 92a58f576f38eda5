"""Observers of the runner: metrics, the application log, a progress bar, a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamduel.connector import PartitionCommit
from streamduel.stream.task import PartitionTask


class Observer:
    """Base class of observers: the runner calls a method after each event. All do nothing here.

    Every method is called in the runner's thread and must return immediately. The tasks passed to
    it may be read during the call only, because the fold continues with them afterwards.
    """

    def turned(self) -> None:
        """The runner's loop completed a poll."""

    def polled(self, records: int) -> None:
        """A poll of the source returned this number of records."""

    def connection(self, *, source: bool) -> None:
        """Whether the click log can be reached now."""

    def unreadable(self, why: str) -> None:
        """Why some partitions of this process cannot be read now; empty if all can be read."""

    def gained(self, partitions: Sequence[int]) -> None:
        """This process owns these partitions now; their snapshots are being loaded."""

    def restored(self, task: PartitionTask) -> None:
        """A gained partition has its state in memory."""

    def reread(self, task: PartitionTask) -> None:
        """A restored partition knows again which impressions are open, and which ids came."""

    def lost(self, partitions: Sequence[int]) -> None:
        """Another process owns these partitions now, or they will be restored again."""

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:
        """A commit of these partitions succeeded, in this time."""

    def published(self, commits: Sequence[PartitionCommit]) -> None:
        """The outputs of these commits are visible; `Message.content` has each as a struct."""

    def fenced(self) -> None:
        """A commit was refused; the partitions will be restored from the last visible one."""

    def lagging(self, lags: Mapping[int, int]) -> None:
        """The number of records of each partition that are not folded yet."""

    def stable_offset_lagging(self, lags: Mapping[int, int]) -> None:
        """How many of them are behind an open transaction of a producer."""
