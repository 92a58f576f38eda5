"""The limits of records and of what is open, and from which offset on they held."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import UnsetType

from streamduel.config import Config


class OpenLimits(NamedTuple):
    """Limits that decide what is remembered and what is open.

    Attributes:
        window_records: see `DedupeSettings`, as for `window_ms`.
        window_ms: bounds the join windows, too.
        max_open_bytes: see `LimitSettings`.
    """

    window_records: int
    window_ms: int
    max_open_bytes: int


class RecordLimits(NamedTuple):
    """Limits that decide what becomes of a record.

    Attributes:
        offset: of the first record that they held for.
        max_record_bytes: see `LimitSettings`, as for the others.
        max_ranks: entries of each list.
        max_duels_per_record: duels of a `duels` record.
        open: where they are not noted, they are taken for those of the configuration, as for
            `max_advance_ms`.
        max_advance_ms: see `TimeSettings`.
    """

    offset: int
    max_record_bytes: int
    max_ranks: int
    max_duels_per_record: int
    open: OpenLimits | None = None
    max_advance_ms: int | None = None

    @classmethod
    def of(cls, config: Config, offset: int = 0) -> RecordLimits:
        """Those of a configuration, from an offset on."""
        limits, dedupe = config.limits, config.dedupe
        return cls(
            offset,
            limits.max_record_bytes,
            limits.max_ranks,
            limits.max_duels_per_record,
            OpenLimits(dedupe.window_records, dedupe.window_ms, limits.max_open_bytes),
            config.time.max_advance_ms,
        )


def continued(
    former: list[RecordLimits] | UnsetType, config: Config, offset: int
) -> list[RecordLimits]:
    """The limits of a snapshot, and those of the configuration from its offset on.

    Args:
        former: of the snapshot; an older one has none, and is taken for one with the same limits.
        config: the configuration.
        offset: the first record that is not folded yet.
    """
    present = RecordLimits.of(config, offset)
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
