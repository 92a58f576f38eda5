"""Remembering which pair a session was given, for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict

from streamduel.client.assignment import Draw


class Sessions:
    """The pairs of recent sessions, so that one keeps its pair when the assignment changes.

    A session is forgotten some time after its *first* draw, however busy it is: a robot that
    never rests must not keep a pair for ever that nobody wants to know more about. So the oldest
    session is always the next to go, also where there are too many of them.

    Args:
        seconds: how long a session keeps its pair.
        most: how many are remembered.

    >>> sessions = Sessions(seconds=600, most=2)
    >>> sessions.hold(1, Draw("bm25", "ltr", 17), now=0)
    Draw(a='bm25', b='ltr', epoch=17)
    >>> sessions.hold(1, Draw("ltr", "ltr", 18), now=599)
    Draw(a='bm25', b='ltr', epoch=17)
    >>> sessions.hold(1, Draw("ltr", "ltr", 18), now=600)
    Draw(a='ltr', b='ltr', epoch=18)
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._held: OrderedDict[int, tuple[float, Draw]] = OrderedDict()  # the oldest first
        self._lock = threading.Lock()

    def hold(self, session: int, draw: Draw, now: float) -> Draw:
        """The pair that the session has, which is this one if it has none yet.

        Args:
            session: a number for it, such as a hash of its name.
            draw: what it would be given now.
            now: in seconds.
        """
        with self._lock:
            while self._held:
                begin, _ = next(iter(self._held.values()))
                if now - begin < self._seconds:
                    break
                self._held.popitem(last=False)
            _, kept = self._held.setdefault(session, (now, draw))
            if len(self._held) > self._most:
                self._held.popitem(last=False)
            return kept
