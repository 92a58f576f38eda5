"""Until when an assignment holds, and when it is published again so that it goes on holding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamduel.config.experiment import FallbackSettings
from streamduel.stream.batch_clock import NEVER

_LOOKS: Final = 2
"""In the time for which an assignment holds. As long as records come at all, in half of that time,
it is renewed before it lapses."""


class Renewal:
    """Keeps an experiment's assignments from lapsing as long as its records come.

    Halfway through its time it looks whether there were records. If there were, the assignment is
    renewed; if not, it lapses, and the next duel has it renewed at once.

    Stream time is 0 before the first record of the log. An assignment that was published then does
    not lapse, since nothing is known of the time; the first record has it renewed.

    Args:
        settings: the fallback; without an arm in it, assignments hold for ever.
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        lapses: whether no record had come when it looked last.
    """

    __slots__ = ("_published_at", "_records", "_settings", "lapses")

    def __init__(self, settings: FallbackSettings, state: Mapping[str, Any] | None = None) -> None:
        self._settings = settings
        self._published_at: int | None = state["published_at"] if state else None
        self._records: int = state["records"] if state else 0
        self.lapses: bool = state["lapses"] if state else False

    @property
    def alarm(self) -> int:
        """The stream time at which to look."""
        if self._settings.arm is None or self._published_at is None or self.lapses:
            return NEVER
        return self._published_at + self._settings.idle_ms // _LOOKS if self._published_at else 1

    def look(self, records: int) -> bool:
        """Whether to renew the assignment, now that the time of the alarm has come.

        Args:
            records: how many the experiment has had.
        """
        self.lapses = bool(self._published_at) and records == self._records
        return not self.lapses

    def published(self, now: int, records: int) -> tuple[int | None, str | None]:
        """An assignment is published.

        Returns:
            Until when it holds, and which arm is to be served alone afterwards.
        """
        if self._settings.arm is None:
            return None, None
        self._published_at, self._records, self.lapses = now, records, False
        return (now + self._settings.idle_ms if now else None), self._settings.arm

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "published_at": self._published_at,
            "records": self._records,
            "lapses": self.lapses,
        }
