"""The limits of records, and from which offset on they held."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import UnsetType

from streamduel.config.model import LimitSettings


class RecordLimits(NamedTuple):
    """Limits that decide whether a record is a dead letter.

    Attributes:
        offset: of the first record that they held for.
        max_record_bytes: see `LimitSettings`, as for the others.
        max_ranks: entries of each list.
        max_duels_per_record: duels of a `duels` record.
    """

    offset: int
    max_record_bytes: int
    max_ranks: int
    max_duels_per_record: int

    @classmethod
    def of(cls, settings: LimitSettings, offset: int = 0) -> RecordLimits:
        """Those of a configuration, from an offset on."""
        return cls(
            offset, settings.max_record_bytes, settings.max_ranks, settings.max_duels_per_record
        )


def continued(
    former: list[RecordLimits] | UnsetType, settings: LimitSettings, offset: int
) -> list[RecordLimits]:
    """The limits of a snapshot, and those of the configuration from its offset on.

    Args:
        former: of the snapshot; an older one has none, and is taken for one with the same limits.
        settings: the configuration's.
        offset: the first record that is not folded yet.
    """
    present = RecordLimits.of(settings, offset)
    if not former:
        return [present._replace(offset=0)]
    return former if former[-1][1:] == present[1:] else [*former, present]


def held_since(limits: Sequence[RecordLimits], offset: int) -> list[RecordLimits]:
    """The limits that hold for records from an offset on, of those in ascending order.

    >>> first, second = RecordLimits(0, 100, 10, 1), RecordLimits(50, 200, 10, 1)
    >>> [len(held_since([first, second], offset)) for offset in (49, 50)]
    [2, 1]
    """
    ended = sum(1 for _, following in pairwise(limits) if following.offset <= offset)
    return list(limits[ended:])
