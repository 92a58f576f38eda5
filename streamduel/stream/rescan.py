"""Where in the log to begin, so that what is only kept in memory comes out the same again."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from streamduel.stream.dedupe import DedupeWindow, WindowStart


class Mark(NamedTuple):
    """Where the dedupe window began by the time of a certain record.

    Attributes:
        offset: of the record, with which a block begins.
        start: of the window.
    """

    offset: int
    start: WindowStart


class Rescan:
    """Finds the record from which on reading makes dedupe window and open impressions anew.

    The window alone takes the stretch since its start. Impressions that are open, and clicks that
    wait, need their own records read again, and for each the verdict of that time: was it a
    duplicate, was its impression known? So the window must be right from their first record on,
    and reading begins where the window began *then*. How that was is noted at every block.

    Args:
        window: the dedupe window.
    """

    __slots__ = ("_marks", "_window")

    def __init__(self, window: DedupeWindow) -> None:
        self._window = window
        self._marks: deque[Mark] = deque()  # the oldest first

    def resume(self, mark: Mark) -> None:
        """Go on from what an earlier life has noted."""
        self._marks.append(mark)

    def mark(self, offset: int) -> None:
        """A block begins with the record at an offset: note where the window begins by then."""
        if not self._marks or offset > self._marks[-1].offset:
            self._marks.append(Mark(offset, self._window.start))

    def last(self, since: int | None) -> Mark:
        """What was noted last before an offset; what was noted earlier is forgotten.

        Args:
            since: of the first record that something open is made of; None if nothing is open. It
                never falls.
        """
        while len(self._marks) > 1 and (since is None or self._marks[1].offset <= since):
            self._marks.popleft()
        return self._marks[0]
