"""What a credit function looks at: a list as it was shown, and the clicks on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol


class ClickLike(Protocol):
    """A click: a `Click` or anything else that has its attributes."""

    @property
    def rank(self) -> int:
        """Of the clicked document, from 0."""

    @property
    def action(self) -> str:
        """What was done."""

    @property
    def ts(self) -> int | None:
        """When, in milliseconds, if that is known."""


class ShownLike(Protocol):
    """A list as it was shown: a `Shown` or anything else that has its attributes."""

    @property
    def teams(self) -> Sequence[str | None]:
        """Per rank "a", "b" or None: for whom a click there speaks."""

    @property
    def chances(self) -> Sequence[float | None] | None:
        """Per rank, how likely the document was to come from side a, if that is known."""


class Click(NamedTuple):
    """A click on a rank of an interleaved list.

    Attributes:
        rank: of the clicked document, from 0.
        action: what was done.
        ts: when, in milliseconds; None if that is not known.
    """

    rank: int
    action: str = "click"
    ts: int | None = None


class Shown(NamedTuple):
    """An interleaved list as it was shown.

    Attributes:
        teams: per rank "a", "b" or None: for whom a click there speaks.
        chances: per rank, how likely the document was to come from side a, given the list; None at
            the ranks where that means nothing. None for all, if it is not known.
    """

    teams: Sequence[str | None]
    chances: Sequence[float | None] | None = None


Credit = Callable[[ShownLike, Sequence[ClickLike]], float]
"""From a list and its clicks, in the order in which they came, to 1.0 (side a wins), 0.0 (side b)
or 0.5 (a tie)."""


def on_ranks(ranks: Iterable[int]) -> list[Click]:
    """Clicks of which only the ranks matter.

    >>> on_ranks([2])
    [Click(rank=2, action='click', ts=None)]
    """
    return [Click(rank) for rank in ranks]


def winner(lead: float) -> float:
    """The outcome of an impression.

    Args:
        lead: by how much side a is ahead, below 0 if side b is.

    >>> winner(3), winner(0), winner(-1)
    (1.0, 0.5, 0.0)
    """
    return 1.0 if lead > 0 else 0.0 if lead < 0 else 0.5
