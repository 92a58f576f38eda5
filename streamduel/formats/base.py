"""The parts that all formats share: the translator's contract, common settings, arms and sides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import BeforeValidator, Field, StringConstraints, field_validator

from streamduel.formats.reading import Found, are_texts, look_up, name
from streamduel.record_rules import too_many_ranks
from streamduel.records import MAX_ACTION, MAX_NAME, InputEvent, Rejected, Side
from streamduel.section import Name, Pair, Section

MAX_ENTRIES: Final = 1000
"""Ranks of a list, unless `limits.max_ranks` is another."""

MAX_REASON: Final = MAX_ACTION
"""Characters of the reason for which a record is ignored, often the name of an action."""


class Ignored(Exception):  # noqa: N818 - a verdict on a record, not a failure of the program
    """A valid record that says nothing about a duel; it is counted by reason.

    The reason has at most `MAX_REASON` characters. It may contain names from the click log, so the
    caller bounds the number of different reasons.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])
        self.reason = reason[:MAX_REASON]


Translator = Callable[[bytes], list[InputEvent]]
"""Translates a record of another program's click log; see `FormatSettings.translate`."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Path = Annotated[str, StringConstraints(pattern=r"^[^.]+(\.[^.]+)*$", max_length=MAX_NAME)]
Paths = Annotated[
    list[Path],
    BeforeValidator(_listed, json_schema_input_type=list[Path] | Path),
    Field(min_length=1),
]
Label = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
ActionName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ACTION)]


class FormatSettings(Section):
    """Settings of every format."""

    experiment: Name | None = Field(
        None,
        description="The experiment of all records; null: each record names its own, and records"
        " that name none are ignored.",
    )
    pair: Pair | None = Field(
        None, description="The two arms of each list that does not name its own."
    )
    arms: dict[Label, Name] = Field(
        {}, description="Arms by their names in the click log, where these differ."
    )

    @field_validator("pair")
    @classmethod
    def _check_pair(cls, pair: list[str] | None) -> list[str] | None:
        if pair and pair[0] == pair[1]:
            raise ValueError(f"must be two arms (found '{pair[0]}' twice)")
        return pair

    most_entries: ClassVar[int] = MAX_ENTRIES
    """The most ranks of a list."""

    @property
    def tells_ranks(self) -> bool:
        """Whether impressions have the teams of the ranks that were shown."""
        return True

    @property
    def most_events(self) -> int:
        """The most events of one record."""
        return 1

    def limited(self, max_ranks: int) -> Self:
        """These settings, which refuse lists with more ranks (`limits.max_ranks`)."""
        self.__dict__["most_entries"] = max_ranks  # a private attribute takes microseconds to read
        return self

    def entries(self, found: Found, allowed: str) -> list[Found]:
        """The entries of an array, one for each rank; another value is Rejected."""
        if isinstance(found.value, list) and len(found.value) > self.most_entries:
            problem = too_many_ranks(found.where, len(found.value), self.most_entries)
            raise Rejected("invalid_record", problem)
        return found.entries(allowed)

    def texts(self, found: Found, most: int) -> list[str] | None:
        """An array of strings of 1 to `most` characters; None if its entries need a closer look."""
        values = found.value
        fits = isinstance(values, list) and len(values) <= self.most_entries
        return values if fits and are_texts(values, most) else None

    @abstractmethod
    def translate(self, value: bytes) -> list[InputEvent]:
        """The events of a record, at least one, in the order in which to fold them.

        A pure function of the record and the settings, so that the result does not depend on
        batches, restarts or replays. The fold joins impressions and clicks.

        Args:
            value: the record, whose size and nesting the stream has checked.

        Raises:
            Ignored: the record says nothing about a duel.
            Rejected: the record is invalid and becomes a dead letter.
        """

    def experiment_of(self, record: dict[str, Any], paths: Sequence[str]) -> str:
        """The experiment of a record; Ignored if neither the settings nor a field names one."""
        if self.experiment is not None:
            return self.experiment
        found = look_up(record, paths)
        if found.value is None:
            raise Ignored("no experiment")
        return name(found)

    def arm(self, found: Found) -> str:
        """The arm with this name in the click log."""
        label = name(found, f"an arm's name, a string of 1 to {MAX_NAME} characters")
        return self.arms.get(label, label)

    def configured_pair(self) -> tuple[str, str] | None:
        """The arms of lists that do not name theirs."""
        return None if self.pair is None else (self.pair[0], self.pair[1])

    def arms_by_rank(self, found: Found, docs: Sequence[str] | None) -> list[str | None]:
        """Per rank, the arm whose document it is, or None.

        `found` is a list with an arm for each rank, or an object with an arm for each document, if
        the documents are known; any other value, or one that does not fit the documents, is
        Rejected.
        """
        if isinstance(found.value, dict) and docs is not None:
            found = Found(found.where, [found.value.get(doc) for doc in docs])
        labels = self.texts(found, MAX_NAME)
        if labels is not None and (docs is None or len(labels) == len(docs)):
            return [self.arms.get(label, label) for label in labels]
        by_rank = self.entries(found, "an array with an arm, or null, for each rank")
        if docs is not None and len(by_rank) != len(docs):
            raise found.misfit(f"an array with an arm, or null, for each of {len(docs)} documents")
        return [None if entry.value in (None, "") else self.arm(entry) for entry in by_rank]


def pair_in(arms: Sequence[str | None]) -> tuple[str, str]:
    """The first two arms whose documents a list shows; Ignored if its opponent is unknown.

    They are sorted by name: if the arm of the first rank were always side a, the coins that decide
    turns would look unfair.
    """
    found = list(dict.fromkeys(arm for arm in arms if arm is not None))
    if len(found) < 2:
        raise Ignored("list of one side")
    first, second = sorted(found[:2])
    return first, second


def side(label: str | None, pair: tuple[str, str], where: str) -> Side | None:
    """The side of an arm in a pair; `a` and `b` are sides, unless arms have these names.

    Another arm is Rejected.

    >>> side("bm25", ("ltr", "bm25"), "teams"), side("a", ("ltr", "bm25"), "teams")
    ('b', 'a')
    """
    if label is None:
        return None
    if label in pair:
        return "a" if label == pair[0] else "b"
    if label == "a":
        return "a"
    if label == "b":
        return "b"
    raise Found(where, label).misfit(f"'{pair[0]}' or '{pair[1]}'")
