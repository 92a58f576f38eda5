"""What every interleaving method takes and gives: two rankings in, one list with teams out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Generic, Literal, NamedTuple, TypeVar

from streamduel.errors import InterleavingError

Document = TypeVar("Document", bound=Hashable)

Team = Literal["a", "b"] | None
"""Whose document it is; None for nobody's."""


class Interleaved(NamedTuple, Generic[Document]):
    """A list to be shown.

    Attributes:
        docs: the documents, the first on top; none of them twice.
        teams: per rank, for whom a click there speaks, as an `interleaving` record has it.
    """

    docs: list[Document]
    teams: list[Team]


def check(length: int, **rankings: Sequence[Document]) -> None:
    """Refuse what cannot be interleaved.

    Args:
        length: how many documents to show.
        **rankings: the rankings, by the names that the message gives them.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is below 0 or no integer.
    """
    if not isinstance(length, Integral):  # as numpy's integers are, too
        raise InterleavingError(
            f"the length of an interleaved list must be an integer (found {length!r})."
        )
    if length < 0:
        raise InterleavingError(
            f"the length of an interleaved list must be at least 0 (found {length})."
        )
    for name, ranking in rankings.items():
        check_unique(name, ranking)


def check_unique(name: str, ranking: Sequence[Document]) -> None:
    """Refuse a document that stands in a ranking twice.

    Args:
        name: of the ranking, for the message.
        ranking: document ids.

    Raises:
        InterleavingError: one does.
    """
    ranks: dict[Document, int] = {}
    for rank, document in enumerate(ranking):
        if document in ranks:
            raise InterleavingError(
                f"{name} must have each document once (found {document!r} at ranks"
                f" {ranks[document]} and {rank})."
            )
        ranks[document] = rank


def check_shown(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> None:
    """Refuse a list that cannot have been made of two rankings.

    Args:
        list_a: document ids of ranker a.
        list_b: those of ranker b.
        docs: what was shown.

    Raises:
        InterleavingError: a shown document is in neither ranking, or was shown twice.
    """
    check_unique("docs", docs)
    known = {*list_a, *list_b}
    for document in docs:
        if document not in known:
            raise InterleavingError(
                f"docs must come from the rankings (found {document!r}, which is in neither)."
            )


def ranks_of(ranking: Sequence[Document]) -> dict[Document, int]:
    """The rank of each document, from 0."""
    return {document: rank for rank, document in enumerate(ranking)}


def contested(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> int:
    """How many of the upper ranks were filled while both rankings had something to add.

    Once one ranking has run out, only the other can fill the list. What it adds says nothing about
    which of the two is better, and a click on it speaks for nobody.

    Args:
        list_a: document ids of ranker a.
        list_b: those of ranker b.
        docs: what was shown.

    Raises:
        InterleavingError: a shown document is in neither ranking, or was shown twice.

    >>> contested(["d1", "d2"], ["d3", "d4", "d5"], ["d1", "d3", "d2", "d4", "d5"])
    3
    """
    check_shown(list_a, list_b, docs)
    in_a, in_b = set(list_a), set(list_b)
    left_a, left_b = len(in_a), len(in_b)
    for rank, document in enumerate(docs):
        if not left_a or not left_b:
            return rank
        left_a -= document in in_a
        left_b -= document in in_b
    return len(docs)
