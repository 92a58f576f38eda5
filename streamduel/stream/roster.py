"""Who competes in an experiment, and since when: arms by name, for ever."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamduel.errors import nearest
from streamduel.records import Rejected

MOST_ARMS: Final = 1000
"""At a time; what the configuration allows, too."""

MOST_NAMES: Final = 10_000
"""Ever: a retired arm's name is kept so that it never comes to mean another ranker."""

FEWEST_ARMS: Final = 2
"""A duel takes two."""


class Roster:
    """The arms of one experiment, present and past.

    An arm is its name. One that has left has left for good: its name stays taken, as a tombstone,
    so that a late click of the old ranker is never counted for a new one.

    Args:
        experiment: its name, for messages.
        arms: those that it began with.

    Attributes:
        arms: the present ones, in the order in which they joined; a place in it is an arm's index.
        index: of every present arm, by name.

    >>> roster = Roster("search", ["bm25", "ltr-v1"])
    >>> roster.join("ltr-v2", offset=10)
    >>> roster.leave("bm25", offset=20)
    >>> roster.arms, sorted(roster.known_at(15)), sorted(roster.known_at(5))
    (['ltr-v1', 'ltr-v2'], ['bm25', 'ltr-v1', 'ltr-v2'], ['bm25', 'ltr-v1'])
    """

    __slots__ = ("_changed_at", "_experiment", "_joined", "_left", "_present", "arms", "index")

    def __init__(self, experiment: str, arms: Iterable[str]) -> None:
        self._experiment = experiment
        self.arms = list(arms)
        self._joined: dict[str, int] = {}
        self._left: dict[str, int] = {}
        self.index: dict[str, int] = {}
        self._number()

    def _number(self) -> None:
        self.index = {arm: index for index, arm in enumerate(self.arms)}
        joined = [offset + 1 for offset in self._joined.values()]
        self._changed_at = sorted([*joined, *self._left.values()])
        self._present: tuple[int, dict[str, Any]] = -1, {}

    def check_join(self, arm: str) -> None:
        """Whether an arm may join.

        Raises:
            Rejected: it competes already, has left, or there are too many.
        """
        if arm in self.index:
            raise Rejected("invalid_record", f"arm '{arm[:80]}' is in the experiment already.")
        if arm in self._left:
            raise Rejected(
                "invalid_record",
                f"arm '{arm[:80]}' was retired at offset {self._left[arm]}, and its name stays "
                f"taken; add the ranker under another name.",
            )
        if len(self.arms) >= MOST_ARMS or len(self.arms) + len(self._left) >= MOST_NAMES:
            raise Rejected(
                "invalid_record",
                f"an experiment has at most {MOST_ARMS} arms at a time and {MOST_NAMES} ever "
                f"(found {len(self.arms)} and {len(self.arms) + len(self._left)}).",
            )

    def check_leave(self, arm: str) -> int:
        """Whether an arm may leave.

        Returns:
            Its index.

        Raises:
            Rejected: it does not compete, or too few would be left.
        """
        if arm not in self.index:
            raise self.stranger(arm)
        if len(self.arms) <= FEWEST_ARMS:
            raise Rejected(
                "invalid_record",
                f"arm '{arm[:80]}' must stay: an experiment has at least {FEWEST_ARMS} arms.",
            )
        return self.index[arm]

    def join(self, arm: str, offset: int) -> None:
        """Let an arm compete from the record after this one on; it has been checked."""
        self.arms.append(arm)
        self._joined[arm] = offset
        self._number()

    def leave(self, arm: str, offset: int) -> None:
        """Let an arm compete no more, from the record after this one on; it has been checked."""
        self.arms.remove(arm)
        self._left[arm] = offset
        self._number()

    def pair(self, a: str, b: str) -> tuple[str, str]:
        """Two present arms, in the order in which they joined.

        Raises:
            Rejected: one of them does not compete.
        """
        for arm in (a, b):
            if arm not in self.index:
                raise self.stranger(arm)
        return (a, b) if self.index[a] < self.index[b] else (b, a)

    def stranger(self, arm: str) -> Rejected:
        """The verdict on a record that names an arm which does not compete."""
        if arm in self._left:
            return Rejected(
                "unknown_arm",
                f"arm '{arm[:80]}' of experiment '{self._experiment}' was retired at offset "
                f"{self._left[arm]}.",
            )
        listed = ", ".join(self.arms[:10]) + (", …" if len(self.arms) > 10 else "")
        hint = nearest(arm, self.arms)
        return Rejected(
            "unknown_arm",
            f"unknown arm '{arm[:80]}' in experiment '{self._experiment}'"
            f"{f'{hint} Its' if hint else '; its'} arms are {listed}.",
        )

    def known_at(self, offset: int) -> Mapping[str, Any]:
        """The arms that a record at this offset may name, whatever has changed since."""
        if not self._changed_at:
            return self.index
        # Between two changes all offsets have the same arms: worked out once, not per record.
        span = bisect_right(self._changed_at, offset)
        if span != self._present[0]:
            self._present = span, self._present_at(offset)
        return self._present[1]

    def _present_at(self, offset: int) -> dict[str, Any]:
        there = {arm: None for arm in self.arms if self._joined.get(arm, -1) < offset}
        for arm, left in self._left.items():
            if self._joined.get(arm, -1) < offset < left:
                there[arm] = None
        return there

    def state(self) -> dict[str, Any]:
        """As JSON has it: who competes, and where in the log others joined or left."""
        return {"arms": list(self.arms), "joined": dict(self._joined), "left": dict(self._left)}

    @classmethod
    def resume(cls, experiment: str, state: Mapping[str, Any]) -> Roster:
        """The roster whose `state` this was."""
        roster = cls(experiment, state["arms"])
        roster._joined.update(state["joined"])
        roster._left.update(state["left"])
        roster._number()
        return roster
