"""Sticky draws: the same numbers for the same key on every machine, and pairs kept per session."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from hashlib import blake2b

from streamduel.client.assignment import Draw

Part = str | int | None


def stable_number(*parts: Part, size: int = 8) -> int:
    """A pseudo-random integer that depends on the parts alone.

    It is the BLAKE2b hash of the parts as a JSON array in ASCII, in big-endian order. All instances
    of a service compute the same number on any machine; `hash` differs between processes.

    Args:
        *parts: names and numbers.
        size: bytes of the number.

    >>> stable_number("search", 17, "session 1")
    2039231684787168567
    """
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest())


def stable_fraction(*parts: Part) -> float:
    """`stable_number` as a number in [0, 1), a multiple of 2**-53.

    Args:
        *parts: names and numbers.
    """
    return (stable_number(*parts) >> 11) * 2.0**-53


class Sessions:
    """The pairs of recent sessions, so that a session keeps its pair when the assignment changes.

    A session expires a fixed time after its *first* draw, however active it is: a crawler must not
    keep its pair permanently. The oldest session is therefore always the next to expire, and the
    one to evict when there are too many.

    Args:
        seconds: how long a session keeps its pair.
        capacity: the number of sessions that are kept.

    >>> sessions = Sessions(seconds=600, capacity=2)
    >>> sessions.hold(1, Draw("bm25", "ltr", 17), now=0)
    Draw(a='bm25', b='ltr', epoch=17)
    >>> sessions.hold(1, Draw("ltr", "ltr", 18), now=599)
    Draw(a='bm25', b='ltr', epoch=17)
    >>> sessions.hold(1, Draw("ltr", "ltr", 18), now=600)
    Draw(a='ltr', b='ltr', epoch=18)
    """

    def __init__(self, seconds: float, capacity: int) -> None:
        self._seconds = seconds
        self._capacity = capacity
        self._held: OrderedDict[int, tuple[float, Draw]] = OrderedDict()  # the oldest first
        self._lock = threading.Lock()

    def hold(self, session: int, draw: Draw, now: float) -> Draw:
        """The pair of the session: `draw`, if the session has none yet.

        Args:
            session: the session's number, such as a hash of its name.
            draw: the pair for a new session.
            now: in seconds.
        """
        with self._lock:
            while self._held:
                begin, _ = next(iter(self._held.values()))
                if now - begin < self._seconds:
                    break
                self._held.popitem(last=False)
            _, kept = self._held.setdefault(session, (now, draw))
            if len(self._held) > self._capacity:
                self._held.popitem(last=False)
            return kept
