"""Duels by segment: the counts of parts of the traffic, beside those of all duels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from streamduel.config.experiment import MAX_CELLS
from streamduel.preference.arrays import Integers
from streamduel.records import Segment

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

PairRow = tuple[int, int, _Count, _Count, _Count]
"""Two arms, the lower first, the wins of each over the other, and their ties."""


class SegmentsState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The counts of all segments.

    Attributes:
        since: the first offset whose impressions belong to these segments.
        duels: by kind and name, the pairs that met.
    """

    since: Annotated[int, msgspec.Meta(ge=0)]
    duels: dict[str, dict[str, list[PairRow]]]


class CountsOfSegments(NamedTuple):
    """A copy of the counts.

    Attributes:
        names: the kind and the name of each segment.
        wins: (S, K, K), [s, i, j] is how often i has beaten j in segment s, without ties.
        ties: (S, K, K), symmetric.
    """

    names: tuple[tuple[str, str], ...]
    wins: Integers
    ties: Integers


class Segments:
    """The wins and ties of each pair of arms, in each configured segment.

    No decision uses them. A duel of an arm with itself is not counted.

    Args:
        configured: the names of the segments, by kind.
        n_arms: K.
        since: the first offset whose impressions belong to these segments: those that are open when
            the segments change belong to none, so that a restart agrees.
        duels: the pairs that met, by kind and name; those that are not configured are left out.

    >>> segments = Segments({"class": ["navigational", "informational"]}, n_arms=2)
    >>> segments.numbers("navigational"), segments.numbers({"class": "other"})
    ((0,), ())
    >>> segments.count((0,), 1, 0, wins=3, losses=1)
    >>> segments.state()
    {'since': 0, 'duels': {'class': {'navigational': [[0, 1, 1, 3, 0]], 'informational': []}}}
    """

    __slots__ = ("_by_kind", "_names", "_of_text", "_ties", "_wins", "since")

    def __init__(
        self,
        configured: Mapping[str, Sequence[str]],
        n_arms: int,
        since: int = 0,
        duels: Mapping[str, Mapping[str, Sequence[PairRow]]] | None = None,
    ) -> None:
        self._names = tuple((kind, name) for kind, names in configured.items() for name in names)
        self._by_kind: dict[str, dict[str, int]] = {}
        of_text: dict[str, tuple[int, ...]] = {}
        for number, (kind, name) in enumerate(self._names):
            self._by_kind.setdefault(kind, {})[name] = number
            of_text[name] = (*of_text.get(name, ()), number)
        self._of_text = of_text
        self.since = since
        self._wins: Integers = np.zeros((len(self._names), n_arms, n_arms), dtype=np.int64)
        self._ties = self._wins.copy()
        for number, (kind, name) in enumerate(self._names):
            for first, second, wins, losses, ties in (duels or {}).get(kind, {}).get(name, ()):
                self.count((number,), first, second, wins, losses, ties)

    def __bool__(self) -> bool:
        """Whether any segment is configured."""
        return bool(self._names)

    def numbers(self, segment: Segment | None) -> tuple[int, ...]:
        """The segments that a record belongs to.

        A string belongs to every kind that has a segment of this name.
        """
        if segment is None:
            return ()
        if isinstance(segment, str):
            return self._of_text.get(segment, ())
        found = ((self._by_kind.get(kind) or {}).get(name) for kind, name in segment.items())
        return tuple(sorted(number for number in found if number is not None))

    def count(
        self,
        numbers: Sequence[int],
        first: int,
        second: int,
        wins: int = 0,
        losses: int = 0,
        ties: int = 0,
    ) -> None:
        """Count duels of a pair in some segments.

        Args:
            numbers: of the segments.
            first: an arm.
            second: an arm.
            wins: of the first over the second.
            losses: wins of the second.
            ties: won by neither.
        """
        if first == second:
            return
        for number in numbers:
            self._wins[number, first, second] += wins
            self._wins[number, second, first] += losses
            self._ties[number, first, second] += ties
            self._ties[number, second, first] += ties

    def add_arm(self) -> None:
        """Append an arm."""
        self._wins, self._ties = (
            np.pad(each, ((0, 0), (0, 1), (0, 1))) for each in (self._wins, self._ties)
        )

    def retire_arm(self, arm: int) -> None:
        """Remove an arm and its duels."""
        self._wins, self._ties = (
            np.delete(np.delete(each, arm, axis=1), arm, axis=2)
            for each in (self._wins, self._ties)
        )

    @property
    def has_room(self) -> bool:
        """Whether one more arm stays within `MAX_CELLS`."""
        n_segments, n_arms, _ = self._wins.shape
        return int(n_segments) * (int(n_arms) + 1) ** 2 <= MAX_CELLS

    def copy(self) -> CountsOfSegments:
        """A copy of the counts, for readers."""
        return CountsOfSegments(self._names, self._wins.copy(), self._ties.copy())

    def changed(self, configured: Mapping[str, Sequence[str]], since: int) -> Segments:
        """Other segments from an offset on; those that stay keep their counts."""
        duels = self.state()["duels"]
        return Segments(configured, self._wins.shape[1], since, duels)

    def state(self) -> dict[str, Any]:
        """What the hard state contains: `SegmentsState` as JSON values."""
        duels: dict[str, dict[str, list[list[int]]]] = {}
        for number, (kind, name) in enumerate(self._names):
            wins, ties = self._wins[number], self._ties[number]
            first, second = np.nonzero(np.triu(wins + wins.T + ties))
            columns = (first, second, wins[first, second], wins[second, first], ties[first, second])
            duels.setdefault(kind, {})[name] = np.stack(columns, axis=1).tolist()
        return {"since": self.since, "duels": duels}
