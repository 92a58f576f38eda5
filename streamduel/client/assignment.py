"""The assignment as a ranker service reads it, the pairs drawn from it, and those of sessions."""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import OrderedDict
from hashlib import blake2b
from itertools import accumulate
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from streamduel.records import Epoch, Name, Time

Part = str | int | None


class Draw(NamedTuple):
    """The pair to interleave for one impression: the names of two rankers.

    The names are equal where that ranker is served alone. `epoch` is the number of the assignment;
    None before an assignment has been read.
    """

    a: str
    b: str
    epoch: int | None = None

    @property
    def alone(self) -> bool:
        """Whether one ranker is served alone, without interleaving and credit."""
        return self.a == self.b


class Pair(msgspec.Struct, frozen=True):
    """A pair of an assignment; its probability is its share of the sum of all shares."""

    a: Name
    b: Name
    share: Annotated[float, Meta(gt=0)]


class Assignment(msgspec.Struct, tag_field="type", tag="assignment", frozen=True):
    """The fields of an `assignment` record that a ranker service needs.

    Other fields are ignored, so that a service can follow older and newer versions of streamduel.
    """

    experiment: Name
    epoch: Epoch
    champion: Name
    pairs: Annotated[list[Pair], Meta(min_length=1)]
    status: str = "running"
    valid_until: Time | None = None
    fallback: Name | None = None


class CurrentAssignment:
    """The newest assignment of an experiment, prepared for drawing.

    `seen_at` is when it was last confirmed, in seconds since 1970.
    """

    __slots__ = ("_upto", "assignment", "seen_at")

    def __init__(self, assignment: Assignment, seen_at: float) -> None:
        self.assignment = assignment
        self.seen_at = seen_at
        self._upto = list(accumulate(pair.share for pair in assignment.pairs))

    def draw(self, fraction: float) -> Draw:
        """The pair at a fraction, from 0 to below 1, of the cumulative shares.

        In the second half of its share its sides are swapped, so that a fault of one side is not
        taken for a ranker.
        """
        upto = self._upto
        # Rounding may put the point on the end of the last share.
        point = fraction * upto[-1]
        place = bisect_right(upto, point, hi=len(upto) - 1)
        pair, begin = self.assignment.pairs[place], upto[place - 1] if place else 0.0
        a, b = (pair.a, pair.b) if point < (begin + upto[place]) / 2 else (pair.b, pair.a)
        return Draw(a, b, self.assignment.epoch)

    def fallback(self, now: float) -> Draw | None:
        """The arm to serve alone after `valid_until`; None while it is valid."""
        until = self.assignment.valid_until
        if until is None or 1000 * now < until:
            return None
        arm = self.assignment.fallback or self.assignment.champion
        return Draw(arm, arm, self.assignment.epoch)


def stable_number(*parts: Part, size: int = 8) -> int:
    """A pseudo-random integer that depends on the parts alone.

    It is the BLAKE2b hash of the parts as a JSON array in ASCII, in big-endian order, of `size`
    bytes. All instances of a service compute the same number on any machine; `hash` differs between
    processes.

    >>> stable_number("search", 17, "session 1")
    2039231684787168567
    """
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest())


def stable_fraction(*parts: Part) -> float:
    """`stable_number` as a number in [0, 1), a multiple of 2**-53."""
    return (stable_number(*parts) >> 11) * 2.0**-53


def not_a_key(found: object) -> str:
    """The sentence about a sticky key of a wrong type.

    It is not converted: services that convert it in different ways would draw different pairs.
    """
    return f"sticky_key must be a string, or None (found {type(found).__name__})."


class Sessions:
    """The pairs of recent sessions, so that a session keeps its pair when the assignment changes.

    A session expires these seconds after its *first* draw, however active it is: a crawler must not
    keep its pair permanently. The oldest session is therefore always the next to expire, and the
    one to evict when there are too many.

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

    def renew_lock(self) -> None:
        """In a forked process: a thread of the parent may have held it, and never releases it."""
        self._lock = threading.Lock()

    def hold(self, session: int, draw: Draw, now: float) -> Draw:
        """The pair of the session: `draw`, if the session has none yet."""
        with self._lock:
            while self._held:
                begin, _ = next(iter(self._held.values()))
                if abs(now - begin) < self._seconds:  # the clock may have been far ahead
                    break
                self._held.popitem(last=False)
            _, kept = self._held.setdefault(session, (now, draw))
            if len(self._held) > self._capacity:
                self._held.popitem(last=False)
            return kept
