"""What a ranker service reads in an assignment, and the pair that it draws by it."""

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
        b: another one's; the same where a ranker is to be served alone.
        epoch: of the assignment that asks for the pair; None where nothing has been read yet.
    """

    a: str
    b: str
    epoch: int | None = None

    @property
    def alone(self) -> bool:
        """Whether one ranker is served alone: there is nothing to interleave, nothing to credit."""
        return self.a == self.b


class Pair(msgspec.Struct, frozen=True):
    """One pair of an assignment; the shares of all pairs are in proportion to one another."""

    a: Name
    b: Name
    share: Annotated[float, Meta(gt=0)]


class Assignment(msgspec.Struct, tag_field="type", tag="assignment", frozen=True):
    """The fields of an `assignment` record that a ranker service goes by.

    The record has more, and may get more still. They are not looked at, so that neither an older
    nor a newer streamduel can stop a service from following it.
    """

    experiment: Name
    epoch: Epoch
    champion: Name
    pairs: Annotated[list[Pair], Meta(min_length=1)]
    status: str = "running"
    valid_until: Time | None = None
    fallback: Name | None = None


class Known:
    """The newest assignment of an experiment, ready to be drawn from.

    Args:
        assignment: as it was read.
        seen_at: when streamduel gave its last sign of life, in seconds since 1970.
    """

    __slots__ = ("_upto", "assignment", "seen_at")

    def __init__(self, assignment: Assignment, seen_at: float) -> None:
        self.assignment = assignment
        self.seen_at = seen_at
        self._upto = list(accumulate(pair.share for pair in assignment.pairs))

    def pick(self, fraction: float) -> Draw:
        """The pair on which a point falls when the pairs are laid out in a row by their shares.

        Args:
            fraction: from 0 to below 1.
        """
        # Rounding may put the point on the end of the row: it belongs to the last pair.
        point = fraction * self._upto[-1]
        pair = self.assignment.pairs[bisect_right(self._upto, point, hi=len(self._upto) - 1)]
        return Draw(pair.a, pair.b, self.assignment.epoch)

    def fallback(self, now: float) -> Draw | None:
        """What is served alone because the assignment holds no more; None while it holds.

        Args:
            now: in seconds since 1970.
        """
        until = self.assignment.valid_until
        if until is None or 1000 * now < until:
            return None
        arm = self.assignment.fallback or self.assignment.champion
        return Draw(arm, arm, self.assignment.epoch)
