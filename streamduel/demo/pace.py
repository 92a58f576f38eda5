"""How fast the demo's users come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

LONGEST_NAP: Final = 0.1
"""Seconds that are slept at a stretch: Ctrl-C is noticed within it, and nobody waits for more."""

LOOKED_BACK: Final = 3.0
"""Seconds over which the present speed is measured: it stands still for the eye, and follows."""


class Pace:
    """Lets so many impressions a second happen, and says how many really do.

    Whoever has fallen behind, on a slow machine or while the process was stopped, does not hurry
    afterwards.

    Args:
        speed: impressions a second; infinite for as fast as it goes.
        clock: seconds that only grow.
        sleep: waits for so many of them.
        stop: ends the waiting.
    """

    def __init__(
        self,
        speed: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        stop: Callable[[], bool],
    ) -> None:
        self._speed, self._clock, self._sleep, self._stop = speed, clock, sleep, stop
        self._began = self._due = clock()
        self._marks = deque([(self._began, 0)])
        self._done = 0

    def wait(self, impressions: int, seconds: float = inf) -> int:
        """Wait until so many more are due, or until the time is over; not, if `stop()` says so.

        Args:
            impressions: how many, at least one.
            seconds: how long at most, more than 0.

        Returns:
            How many are due, at least one.
        """
        end = self._clock() + seconds
        due = self._due + impressions / self._speed
        if due > end:  # never at an infinite speed
            impressions = max(1, impressions - round((due - end) * self._speed))
            due = min(end, self._due + impressions / self._speed)
        self._due = max(self._clock(), due)
        while (rest := self._due - self._clock()) > 0 and not self._stop():
            self._sleep(min(LONGEST_NAP, rest))
        self._done += impressions
        self._marks.append((self._clock(), self._done))
        while self._marks[-1][0] - self._marks[0][0] > LOOKED_BACK and len(self._marks) > 2:
            self._marks.popleft()
        return impressions

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._clock() - self._began

    @property
    def measured(self) -> float:
        """Impressions a second of late; 0 before there were any."""
        (began, before), (now, done) = self._marks[0], self._marks[-1]
        return (done - before) / (now - began) if now > began else 0.0
