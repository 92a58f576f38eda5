"""The records that come in and go out, as msgspec structs.

They are the wire format: field names are what other programs rely on. Unknown fields are
ignored on the way in. msgspec decodes and validates one in about 0.4 µs, a fifth of what
pydantic takes, and every record of the log passes here. The JSON Schemas under `docs/schemas`
are generated from these classes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_COUNT = 2**40
"""Of the duels that one record may stand for: a thousand such are still counted exactly."""
MAX_TIME = 2**53
"""Milliseconds; larger integers lose digits in other programs' JSON."""

Id = Annotated[str, Meta(min_length=1, max_length=256, description="The deduplication key.")]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Rank = Annotated[int, Meta(ge=0, le=MAX_TIME, description="Position in the list, from 0.")]
Time = Annotated[int, Meta(ge=0, le=MAX_TIME, description="Milliseconds since the Unix epoch.")]
Side = Literal["a", "b"]
Doc = Annotated[str, Meta(min_length=1, max_length=1024, description="A document's id.")]
Chance = Annotated[float, Meta(ge=0, le=1)]
Epoch = Annotated[int, Meta(ge=1, le=MAX_TIME, description="Of an assignment.")]
ActionName = Annotated[str, Meta(min_length=1, max_length=64, description="What was done.")]


class InputRecord(msgspec.Struct, tag_field="type", frozen=True, gc=False):
    """What every input record has."""

    id: Id
    experiment: Name


class Duel(InputRecord, tag="duel", frozen=True, gc=False):
    """An impression already credited.

    With `a == b` the arm was served alone: that advances the policy's time and teaches nothing.
    """

    a: Name
    b: Name
    winner: Literal["a", "b", "tie"] | None
    ts: Time | None = None


class Duels(InputRecord, tag="duels", frozen=True, gc=False):
    """A pre-aggregated count of duels of one pair, at least one in all."""

    a: Name
    b: Name
    wins_a: Count
    wins_b: Count
    ties: Count
    ts: Time | None = None


class RankClick(msgspec.Struct, frozen=True, gc=False):
    """A click on a rank of an interleaved list."""

    rank: Rank
    ts: Time | None = None
    action: ActionName = "click"


class Interleaving(InputRecord, tag="interleaving", frozen=True, gc=False):
    """One finished interleaved impression: whose document stood where, and what was clicked.

    `chances` holds for each rank how likely its document was to come from side a: what the
    credit function `probabilistic` goes by. `epoch` is of the assignment that asked for the pair.
    """

    a: Name
    b: Name
    teams: list[Side | None]
    clicks: list[Rank | RankClick]
    chances: list[Chance | None] | None = None
    epoch: Epoch | None = None
    ts: Time | None = None


class Impression(InputRecord, tag="impression", frozen=True, gc=False):
    """An interleaved list was shown; its clicks come as records of their own.

    `docs` holds the document of each rank, so that clicks may name documents. For `chances` and
    `epoch`, see `Interleaving`.
    """

    a: Name
    b: Name
    teams: list[Side | None]
    docs: list[Doc] | None = None
    chances: list[Chance | None] | None = None
    epoch: Epoch | None = None
    ts: Time | None = None


class Click(InputRecord, tag="click", frozen=True, gc=False):
    """A click on an impression, by rank or by document; it may arrive before the impression."""

    impression: Id
    rank: Rank | None = None
    doc: Doc | None = None
    action: ActionName = "click"
    ts: Time | None = None


Action = Literal[
    "pause", "resume", "add_arm", "retire_arm", "reset", "freeze_pair", "unfreeze_pair"
]


class Control(InputRecord, tag="control", frozen=True, gc=False, omit_defaults=True):
    """A change of the experiment, ordered with the data.

    `arm` is whom `add_arm` and `retire_arm` mean, `a` and `b` are the pair of `freeze_pair`; the
    other actions have no use for them.
    """

    action: Action
    arm: Name | None = None
    a: Name | None = None
    b: Name | None = None
    ts: Time | None = None


InputEvent = Duel | Duels | Interleaving | Impression | Click | Control
"""Every input record there is; the field `type` says which."""


class PairShare(msgspec.Struct, frozen=True):
    """One pair of an assignment and the share of impressions that it is to get.

    `remaining` is how many duels of the pair an open batch still wants, else null.
    """

    a: Name
    b: Name
    share: Annotated[float, Meta(gt=0, le=1)]
    remaining: Annotated[int, Meta(ge=0)] | None = None


class Assignment(msgspec.Struct, tag_field="type", tag="assignment", frozen=True):
    """What ranker services read: which pairs to interleave from now on.

    A reader ignores an epoch that is not larger than the last it saw. `offset` is the last
    input record that the assignment takes into account (-1: none yet), `ts` the stream time
    there (0: none yet). `stage` is the algorithm at work, the policy itself unless it goes over
    to others. Where there is a fallback, a reader serves that arm alone from `valid_until` on, by
    its own clock, until it sees the next assignment.
    """

    experiment: Name
    epoch: Annotated[int, Meta(ge=1)]
    policy: str
    champion: Name
    pairs: list[PairShare]
    duels: Annotated[int, Meta(ge=0)]
    status: Literal["running", "paused", "finished"]
    partition: Annotated[int, Meta(ge=0)]
    offset: Annotated[int, Meta(ge=-1)]
    ts: Time
    stage: str
    valid_until: Time | None = None
    fallback: Name | None = None


Reason = Literal[
    "invalid_json",
    "invalid_record",
    "unknown_experiment",
    "unknown_arm",
    "too_large",
    "wrong_partition",
]


class DeadLetter(
    msgspec.Struct, tag_field="type", tag="dead_letter", frozen=True, omit_defaults=True
):
    """An input record that could not be used, whole, with the reason.

    `value` is the input text, or base64 of it where it is not UTF-8 (`encoding`). Of an input
    too large for one message only the beginning is kept: `truncated` is then true and `size`
    says how many bytes there were; the record itself still stands at its offset of the log.
    """

    reason: Reason
    error: str
    topic: str
    partition: int
    offset: int
    value: str | None
    encoding: Literal["base64"] | None = None
    truncated: bool = False
    size: int | None = None


class Rejected(Exception):  # noqa: N818 - a verdict on a record, not a failure of the program
    """A record that becomes a dead letter: the reason's code and one sentence."""

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(sentence)
        self.reason: Reason = reason
        self.sentence = sentence
