"""Patterns of teams: each is kept once for all impressions of a partition that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum
from operator import mul
from typing import Final

from streamduel.records import Side
from streamduel.stream.join_state import Teams

MAX_PATTERN_RANKS: Final = 2**16
"""Ranks of all patterns that are kept, 8 bytes each; the 1024 patterns of ten ranks have 10,240."""

WHOLE: Final = 1000
"""Leads are whole thousandths of the prominence of all ranks of a list: their sum is exact on every
machine."""

_SIGNS: Final[Mapping[Side | None, float]] = {"a": 1.0, "b": -1.0, None: 0.0}

TeamFeatures = tuple[int, int, int, int, int]


def features_of(teams: Sequence[Side | None]) -> TeamFeatures:
    """The features of an interleaved list.

    The rank r of a list, from 0, has the prominence 1/(r + 1). The lead of side a is the prominence
    of its ranks minus that of side b's ranks.

    Returns:
        Documents of side a, and of side b; whether the top rank is a's, and b's; and the lead of
        side a, in thousandths of the prominence of all ranks.

    >>> features_of(["a", "b", "b"]), features_of(["a", "a", "b"])
    ((1, 2, 1, 0, 91), (2, 1, 1, 0, 636))
    """
    ours, theirs = teams.count("a"), teams.count("b")
    if not teams:
        return 0, 0, 0, 0, 0
    prominence, whole = _prominence(len(teams))
    lead = fsum(map(mul, map(_SIGNS.__getitem__, teams), prominence))
    top = teams[0]
    return ours, theirs, int(top == "a"), int(top == "b"), round(WHOLE * lead / whole)


@lru_cache(maxsize=16)
def _prominence(ranks: int) -> tuple[tuple[float, ...], float]:
    """The prominence of each rank of a list, and of all ranks together."""
    each = tuple(1 / (rank + 1) for rank in range(ranks))
    return each, fsum(each)


class TeamPatterns:
    """The patterns of one partition, as many as `MAX_PATTERN_RANKS` allows."""

    __slots__ = ("_kept", "_last", "_ranks")

    def __init__(self) -> None:
        self._kept: dict[Teams, tuple[Teams, TeamFeatures]] = {}
        self._last: tuple[Teams, TeamFeatures] = (), features_of(())
        self._ranks = 0

    def of(self, teams: Sequence[Side | None]) -> tuple[Teams, TeamFeatures]:
        """A pattern, the same object whenever it is kept, and its features."""
        pattern = tuple(teams)
        if pattern == self._last[0]:  # an impression is counted, then opened
            return self._last
        found = self._kept.get(pattern)
        if found is None:
            found = pattern, features_of(pattern)
            if self._ranks + len(pattern) < MAX_PATTERN_RANKS:
                self._kept[pattern] = found
                self._ranks += len(pattern) + 1
        self._last = found
        return found
