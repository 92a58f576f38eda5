"""When a batch is looked at again, in stream time."""

from __future__ import annotations

from typing import Any, Final

from streamduel.config.experiment import ExperimentSettings
from streamduel.records import MAX_TIME

NEVER: Final = 2 * MAX_TIME
"""Later than any stream time."""


class BatchClock:
    """Since when a batch is open, and when it was published last.

    Stream time is 0 before the first record; a batch that was opened then counts as opened by the
    first record.

    Args:
        settings: the deadline of a batch, and how often its rest is published, among others.

    Attributes:
        opened_at: stream time; None before the first batch.
        published_at: stream time when its rest was last looked at.
    """

    __slots__ = ("_settings", "opened_at", "published_at")

    def __init__(
        self, settings: ExperimentSettings, opened_at: int | None = None, published_at: int = 0
    ) -> None:
        self._settings = settings
        self.opened_at = opened_at
        self.published_at = published_at

    def open(self, now: int) -> None:
        """A batch begins."""
        self.opened_at = self.published_at = now

    def begins(self, now: int) -> bool:
        """Whether the first batch begins now, or one opened before all records has its time now."""
        return self.opened_at is None or self.opened_at == 0 < now

    def is_overdue(self, now: int) -> bool:
        """Whether the deadline has passed."""
        return self._deadline <= now

    @property
    def _deadline(self) -> int:
        after = self._settings.batch_deadline_ms
        return NEVER if after is None or not self.opened_at else self.opened_at + after

    @property
    def alarm(self) -> int:
        """The next stream time at which there is something to do."""
        if not self.opened_at:
            return 1
        again = self.published_at + self._settings.batch_republish_ms
        return min(again, self._deadline) if self._deadline > self.published_at else again

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"opened_at": self.opened_at, "published_at": self.published_at}
