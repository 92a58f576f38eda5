"""The arms of an experiment, present and retired, by name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from streamduel.config.experiment import MIN_ARMS
from streamduel.errors import listed, similar
from streamduel.records import Rejected
from streamduel.section import MAX_ARMS

MAX_NAMES: Final = 10_000
"""The most names, retired arms included: they are kept, so that none means another ranker."""

MAX_NAME_BYTES: Final = 2**21
"""The most bytes of all names as JSON. A snapshot has each up to four times, and Kafka takes no
record above 16 MiB: a service that has accepted more could never commit again."""


class Roster:
    """The arms of one experiment.

    An arm is its name. The name of a retired arm stays taken, so that a late click on the old
    ranker is never counted for a new one.

    Args:
        experiment: name of the experiment, for messages.
        arms: the present arms, in the order in which they were added.
        added: the offsets at which arms were added later, by name.
        retired: the offsets at which arms were retired, by name.

    Attributes:
        arms: the present arms.
        index: the index in `arms` of every present arm, by name.

    >>> roster = Roster("search", ["bm25", "ltr-v1"])
    >>> roster.add("ltr-v2", offset=10)
    >>> roster.retire("bm25", offset=20)
    >>> roster.arms, sorted(roster.known_at(15)), sorted(roster.known_at(5))
    (['ltr-v1', 'ltr-v2'], ['bm25', 'ltr-v1', 'ltr-v2'], ['bm25', 'ltr-v1'])
    """

    __slots__ = (
        "_added", "_changed_at", "_experiment", "_name_bytes", "_present", "_retired", "arms",
        "index",
    )  # fmt: skip

    def __init__(
        self,
        experiment: str,
        arms: Iterable[str],
        added: Mapping[str, int] | None = None,
        retired: Mapping[str, int] | None = None,
    ) -> None:
        self._experiment = experiment
        self.arms = list(arms)
        self._added = dict(added or {})
        self._retired = dict(retired or {})
        self._name_bytes = sum(map(_bytes, (*self.arms, *self._retired)))
        self._number()

    def _number(self) -> None:
        self.index: dict[str, int] = {arm: index for index, arm in enumerate(self.arms)}
        added = [offset + 1 for offset in self._added.values()]
        self._changed_at = sorted([*added, *self._retired.values()])
        self._present: tuple[int, dict[str, Any]] = -1, {}

    def check_new(self, *arms: str) -> None:
        """Check that some arms can be added together.

        Raises:
            Rejected: one competes already or was retired, or there are too many, or too long ones.
        """
        size = self._name_bytes
        for present, arm in enumerate(arms, len(self.arms)):
            size += _bytes(arm)
            self._check_new(arm, present, size)

    def _check_new(self, arm: str, present: int, size: int) -> None:
        """Check one, beside this number of present arms, with this size of all names."""
        if arm in self.index:
            raise Rejected("invalid_record", f"arm '{arm[:80]}' is in the experiment already.")
        if arm in self._retired:
            raise Rejected(
                "invalid_record",
                f"arm '{arm[:80]}' was retired{self._when(arm)}, and its name stays taken; add the "
                f"ranker under another name.",
            )
        if present >= MAX_ARMS or present + len(self._retired) >= MAX_NAMES:
            raise Rejected(
                "invalid_record",
                f"an experiment has at most {MAX_ARMS} arms at a time and {MAX_NAMES} ever "
                f"(found {present} and {present + len(self._retired)}).",
            )
        if size > MAX_NAME_BYTES:
            raise Rejected(
                "invalid_record",
                f"the names of an experiment's arms, retired ones included, may have at most "
                f"{MAX_NAME_BYTES} bytes in all (found {size}).",
            )

    def check_retirable(self, arm: str) -> int:
        """Check that an arm can be retired.

        Returns:
            Its index.

        Raises:
            Rejected: it does not compete, or too few would be left.
        """
        if arm not in self.index:
            raise self.unknown(arm)
        if len(self.arms) <= MIN_ARMS:
            raise Rejected(
                "invalid_record",
                f"arm '{arm[:80]}' must stay: an experiment has at least {MIN_ARMS} arms.",
            )
        return self.index[arm]

    def add(self, arm: str, offset: int) -> None:
        """Let a checked arm compete from the record after this offset on."""
        self.arms.append(arm)
        self._name_bytes += _bytes(arm)
        self._added[arm] = offset
        self._number()

    def retire(self, arm: str, offset: int) -> None:
        """Retire a checked arm, from the record after this offset on."""
        self.arms.remove(arm)
        self._retired[arm] = offset
        self._number()

    def pair(self, a: str, b: str) -> tuple[str, str]:
        """Two present arms, in the order in which they joined.

        Raises:
            Rejected: one of them does not compete.
        """
        for arm in (a, b):
            if arm not in self.index:
                raise self.unknown(arm)
        return (a, b) if self.index[a] < self.index[b] else (b, a)

    def _when(self, arm: str) -> str:
        """Where an arm was retired; nothing if that was in an earlier click log."""
        offset = self._retired[arm]
        return f" at offset {offset}" if offset >= 0 else ""

    def unknown(self, arm: str) -> Rejected:
        """The verdict on a record that names an arm which does not compete."""
        if arm in self._retired:
            return Rejected(
                "unknown_arm",
                f"arm '{arm[:80]}' of experiment '{self._experiment}' was retired"
                f"{self._when(arm)}.",
            )
        hint = similar(arm, self.arms)
        return Rejected(
            "unknown_arm",
            f"unknown arm '{arm[:80]}' in experiment '{self._experiment}'"
            f"{f'{hint} Its' if hint else '; its'} arms are {listed(self.arms)}.",
        )

    def unchanged_since(self, offset: int) -> bool:
        """Whether records from this offset on may name the present arms."""
        return not self._changed_at or self._changed_at[-1] <= offset

    def known_at(self, offset: int) -> Mapping[str, Any]:
        """The arms that a record at this offset may name; indexed only if no arm ever changed."""
        if not self._changed_at:
            return self.index
        # Between two changes all offsets have the same arms: computed once, not per record.
        span = bisect_right(self._changed_at, offset)
        if span != self._present[0]:
            self._present = span, self._present_at(offset)
        return self._present[1]

    def _present_at(self, offset: int) -> dict[str, Any]:
        present = {arm: None for arm in self.arms if self._added.get(arm, -1) < offset}
        for arm, retired in self._retired.items():
            if self._added.get(arm, -1) < offset < retired:
                present[arm] = None
        return present

    def state(self) -> dict[str, Any]:
        """The present arms, and the offsets at which arms were added or retired."""
        return {"arms": list(self.arms), "added": dict(self._added), "retired": dict(self._retired)}


def _bytes(arm: str) -> int:
    """The bytes of a name as JSON."""
    return len(msgspec.json.encode(arm))
