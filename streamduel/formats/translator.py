"""What a translator is, and the verdict on a record that means nothing to streamduel."""

from __future__ import annotations

from typing import Protocol

from streamduel.records import InputEvent


class Translator(Protocol):
    """From the bytes of one record of a foreign log to what it says in streamduel's own records.

    It is a pure function of the value and of its settings: what was translated before leaves no
    trace, so a log gives the same events however it is cut, restarted or replayed. What belongs
    together, as an impression and its clicks, is joined by the fold.
    """

    def __call__(self, value: bytes) -> list[InputEvent]:
        """The events of a record, one at least, in the order in which they are to be folded.

        Args:
            value: at most as large, and nested as deep, as the stream allows.

        Raises:
            Ignored: the record is as it should be, and says nothing about a duel.
            Rejected: it cannot be used, and becomes a dead letter.
        """


class Ignored(Exception):  # noqa: N818 - a verdict on a record, not a failure of the program
    """A record that is counted under a reason and changes nothing else.

    Attributes:
        reason: at most `MAX_REASON` characters. It may repeat the name of an event from the log,
            so that there may be many of them: who counts them bounds their number.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])
        self.reason = reason[:MAX_REASON]


MAX_REASON = 64
"""Characters: as many as an action of streamduel's own records may have."""
