"""The assignment as a ranker service reads it, and the pair drawn from it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from streamduel.records import Epoch, Name, Time


class Draw(NamedTuple):
    """The pair to interleave for one impression.

    Attributes:
        a: a ranker's name.
        b: another ranker's name; the same name where that ranker is served alone.
        epoch: the number of the assignment; None before an assignment has been read.
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

    Args:
        assignment: the assignment.
        seen_at: when it was last confirmed, in seconds since 1970.
    """

    __slots__ = ("_upto", "assignment", "seen_at")

    def __init__(self, assignment: Assignment, seen_at: float) -> None:
        self.assignment = assignment
        self.seen_at = seen_at
        self._upto = list(accumulate(pair.share for pair in assignment.pairs))

    def draw(self, fraction: float) -> Draw:
        """The pair at a point of the cumulative shares.

        Args:
            fraction: from 0 to below 1.
        """
        # Rounding may put the point on the end of the last share.
        point = fraction * self._upto[-1]
        pair = self.assignment.pairs[bisect_right(self._upto, point, hi=len(self._upto) - 1)]
        return Draw(pair.a, pair.b, self.assignment.epoch)

    def fallback(self, now: float) -> Draw | None:
        """The arm to serve alone after `valid_until`; None while the assignment is valid.

        Args:
            now: in seconds since 1970.
        """
        until = self.assignment.valid_until
        if until is None or 1000 * now < until:
            return None
        arm = self.assignment.fallback or self.assignment.champion
        return Draw(arm, arm, self.assignment.epoch)
