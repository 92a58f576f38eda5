"""What the stages of the job pass on, as msgpack: parts of slices, and counts of slices."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]

Group = tuple[str, str, str, str]
"""What duels are counted by: experiment, two arms, and segments as JSON."""


class Finished(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A duel, a finished interleaved impression with its credit, or duels counted before.

    Attributes:
        key: of its id.
        ts: its time.
        partition: its place in the topic, as `offset`.
        offset: its place in the partition.
        group: what it counts for.
        outcome: as `crediting.outcome` says it.
        wins: of duels counted before, those won by the first arm, the second, and neither.
    """

    key: int
    ts: int
    partition: int
    offset: int
    group: Group
    outcome: int
    wins: tuple[int, int, int] | None = None


class Shown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An impression that waits for its clicks.

    Attributes:
        key: of its id; then as in `Finished`.
        teams: for each rank `a`, `b` or `-`.
        docs: for each rank, the `digest` of the document; None if clicks name ranks only.
        chances: for each rank, the probability that the document came from side a, if logged.
    """

    key: int
    ts: int
    partition: int
    offset: int
    group: Group
    teams: str
    docs: bytes | None
    chances: list[float | None] | None


class Clicked(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A click that waits for its impression.

    Attributes:
        key: of its impression's id; then as in `Finished`.
        own: key of its own id, within its impression.
        rank: the rank, if it names one.
        doc: the `digest` of the document, if it names one instead.
        action: the kind of click.
        at: its event time, which orders the clicks of an impression.
    """

    key: int
    ts: int
    partition: int
    offset: int
    own: int
    rank: int | None
    doc: bytes | None
    action: str
    at: int | None


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Parts of one slice, as they were read together.

    Attributes:
        keys: the key of each, 8 bytes each, to skip chunks of clicks without a key that is needed.
        body: the parts.
    """

    keys: bytes
    body: bytes


class Counted(msgspec.Struct, frozen=True, tag="counted", array_like=True):
    """Duels of one pair in one slice, counted in one bucket.

    Attributes:
        group: experiment, arms in order of their names, and segments as JSON.
        lane: name of the lane.
        start: beginning of the slice.
        wins_a: duels won by the first arm.
        wins_b: duels won by the second arm.
        ties: duels won by neither.
    """

    group: Group
    lane: str
    start: int
    wins_a: int
    wins_b: int
    ties: int


class Forwarded(msgspec.Struct, frozen=True, tag="forwarded", array_like=True):
    """A message that is written unchanged.

    Attributes:
        place: partition and offset of the raw record, which orders messages.
        topic: where to; empty for the topic that streamduel reads.
        key: its key.
        value: its value.
    """

    place: tuple[int, int]
    topic: str
    key: bytes | None
    value: bytes


class Tally(msgspec.Struct, frozen=True, tag="tally", array_like=True):
    """Records by outcome."""

    counts: dict[str, int]


Output = Counted | Forwarded | Tally

pack = msgspec.msgpack.Encoder().encode
unpack_output = msgspec.msgpack.Decoder(Output).decode
unpack_chunk = msgspec.msgpack.Decoder(Chunk).decode
unpack_finished = msgspec.msgpack.Decoder(list[Finished]).decode
unpack_shown = msgspec.msgpack.Decoder(list[Shown]).decode
unpack_clicked = msgspec.msgpack.Decoder(list[Clicked]).decode


def chunk_of(parts: Sequence[Finished | Shown | Clicked]) -> bytes:
    """The chunk of some parts."""
    keys = np.fromiter((part.key for part in parts), np.int64, len(parts))
    return pack(Chunk(keys.tobytes(), pack(parts)))
