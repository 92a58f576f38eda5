"""The input and output records, as msgspec structs.

They are the wire format: other programs rely on the names of the fields. Unknown fields of input
records are ignored. msgspec decodes and validates a record in about 0.4 µs, a fifth of the time
that pydantic takes. The JSON Schemas in `docs/schemas` are generated from these classes, and
`streamduel.record_rules` has what a single field cannot express.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

MARKER: Final = "control_marker"
"""The field `type` of streamduel's own records, at whose place a control record takes effect."""

MAX_NAME: Final = 256
"""Characters of a record's id, an experiment's name and an arm's name."""
MAX_DOC: Final = 1024
"""Characters of a document's id."""
MAX_ACTION: Final = 64
"""Characters of a click's action."""
MAX_QUERY: Final = 1024
"""Characters of a query: search engines cut longer ones."""
MAX_NOTE: Final = 1000
"""Characters of a note: a hundred of them are kept."""
MAX_SEGMENTS: Final = 8
"""Ways in which one record is segmented."""
MAX_SETTINGS: Final = 100
"""Settings in one record: more than an experiment has."""
MAX_COUNT: Final = 2**40
"""Duels in one record: the sum of a thousand such counts is exact."""
MAX_TIME: Final = 2**53
"""Milliseconds, and any other integer: larger ones lose digits in other programs' JSON."""

Id = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, description="The deduplication key.")]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Rank = Annotated[int, Meta(ge=0, le=MAX_TIME, description="Position in the list, from 0.")]
Time = Annotated[int, Meta(ge=0, le=MAX_TIME, description="Milliseconds since the Unix epoch.")]
Side = Literal["a", "b"]
Status = Literal["running", "paused", "finished"]
Doc = Annotated[str, Meta(min_length=1, max_length=MAX_DOC, description="A document's id.")]
Chance = Annotated[float, Meta(ge=0, le=1)]
Epoch = Annotated[int, Meta(ge=1, le=MAX_TIME, description="The number of an assignment.")]
ActionName = Annotated[
    str, Meta(min_length=1, max_length=MAX_ACTION, description="The action, such as `click`.")
]
Client = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_NAME, description="The user or session whose record it is."),
]
Query = Annotated[str, Meta(max_length=MAX_QUERY, description="What the user searched for.")]
SegmentName = Annotated[str, Meta(max_length=MAX_NAME)]
Segments = Annotated[dict[Name, SegmentName], Meta(max_length=MAX_SEGMENTS)]
Segment = Annotated[
    SegmentName | Segments,
    Meta(description="A part of the traffic, or parts by the name of the segmentation."),
]


class Origin(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Where a record comes from, as far as it says; the last fields of every input record."""

    client: Client | None = None
    query: Query | None = None
    segment: Segment | None = None


class InputRecord(
    Origin, tag_field="type", frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True
):
    """The fields of every input record."""

    id: Id
    experiment: Name


class Duel(InputRecord, tag="duel", frozen=True, gc=False):
    """An impression that is already credited.

    With `a == b` the arm was served alone: the record advances the policy's time and has no other
    effect on it.
    """

    a: Name
    b: Name
    winner: Literal["a", "b", "tie"] | None
    ts: Time | None = None


class Duels(InputRecord, tag="duels", frozen=True, gc=False):
    """A pre-aggregated count of duels of one pair.

    At least one in all, and at most `limits.max_duels_per_record` of the configuration.
    """

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


if TYPE_CHECKING:
    Docs = Any
else:
    # Decoded as its text: what decides nothing must not take time and memory.
    Docs = msgspec.Raw


class Interleaving(InputRecord, tag="interleaving", frozen=True, gc=False):
    """A finished interleaved impression: the team of each rank, and all clicks.

    `chances` holds for each rank the probability that its document came from side a, for the credit
    function `probabilistic`. `epoch` is the number of the assignment that the pair was drawn from.
    `docs` holds the document of each rank, for people who look at examples; it decides nothing, and
    anything but an id for each rank is ignored.
    """

    a: Name
    b: Name
    teams: list[Side | None]
    clicks: list[Rank | RankClick]
    chances: list[Chance | None] | None = None
    epoch: Epoch | None = None
    ts: Time | None = None
    docs: Docs = None


class Impression(InputRecord, tag="impression", frozen=True, gc=False):
    """An interleaved list was shown; its clicks are separate records.

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
    "pause",
    "resume",
    "add_arm",
    "retire_arm",
    "reset",
    "freeze_pair",
    "unfreeze_pair",
    "apply",
    "note",
]

Actor = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_NAME, description="Who acts, such as `alice@bastion`."),
]


Note = Annotated[
    str, Meta(min_length=1, max_length=MAX_NOTE, description="A note for the timeline.")
]
Settings = Annotated[
    dict[Name, msgspec.Raw],
    Meta(
        min_length=1,
        max_length=MAX_SETTINGS,
        description="New values of keys of the experiment's configuration; others stay.",
    ),
]


class Control(InputRecord, tag="control", frozen=True, gc=False):
    """A change of the experiment, ordered with the data.

    `add_arm` and `retire_arm` need `arm`, and `add_arm` may name another arm that the new one is
    `like`; `freeze_pair` needs `a` and `b`; `apply` needs
    `settings`; `note` needs `text`; the other actions ignore these fields. `actor` is the person or
    program that wants the change.
    """

    action: Action
    arm: Name | None = None
    a: Name | None = None
    b: Name | None = None
    ts: Time | None = None
    actor: Actor | None = None
    settings: Settings | None = None
    text: Note | None = None
    like: Name | None = None


InputEvent = Duel | Duels | Interleaving | Impression | Click | Control
"""Any input record; its field `type` is the class's tag."""


class PairShare(msgspec.Struct, frozen=True):
    """A pair of an assignment and its share of the impressions.

    `remaining` is the number of duels of the pair that an open batch still needs, else null.
    """

    a: Name
    b: Name
    share: Annotated[float, Meta(gt=0, le=1)]
    remaining: Annotated[int, Meta(ge=0)] | None = None


class Assignment(msgspec.Struct, tag_field="type", tag="assignment", frozen=True):
    """The published plan of an experiment: the pairs that ranker services interleave.

    A reader ignores an epoch that is not larger than the last one it has read. `offset` is the last
    input record that the assignment takes into account (-1: none yet), `ts` the stream time there
    (0: none yet). `stage` is the algorithm at work: the policy, or the one it has switched to.
    With a fallback, a reader serves that arm alone from `valid_until` on, by its own clock, until
    it reads the next assignment.
    """

    experiment: Name
    epoch: Annotated[int, Meta(ge=1)]
    policy: str
    champion: Name
    pairs: list[PairShare]
    duels: Annotated[int, Meta(ge=0)]
    status: Status
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
    """An input record that could not be used, with the reason.

    `value` is the input text, or base64 if it is not UTF-8 (`encoding`). If the input is too large
    for one message, `value` is its beginning, `truncated` is true and `size` is the number of
    bytes; the whole record remains in the click log at `offset`.
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


class Rejected(Exception):  # noqa: N818 - an outcome of a record, not an error of the program
    """The record becomes a dead letter, for the reason that the sentence explains.

    Args:
        reason: the code.
        sentence: what is wrong.
        beginning: of a record that the source has not read whole: what is kept of it.
        size: of such a record, its bytes.
    """

    def __init__(
        self, reason: Reason, sentence: str, *, beginning: bytes | None = None, size: int = 0
    ) -> None:
        super().__init__(sentence)
        self.reason: Reason = reason
        self.sentence = sentence
        self.beginning = beginning
        self.size = size
