"""What interleaving methods are built from: types, checks, random bits, remaining documents."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from numbers import Integral
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from streamduel.errors import InterleavingError

Document = TypeVar("Document", bound=Hashable)

Entry = TypeVar("Entry")

Team = Literal["a", "b"] | None
"""The side that a click on a document counts for; None: neither."""


class Interleaved(NamedTuple, Generic[Document]):
    """An interleaved list: its documents from the top, each once, and the team of each rank."""

    docs: list[Document]
    teams: list[Team]


class Multileaved(NamedTuple, Generic[Document]):
    """A list of several rankings; a team is the index of a ranking, or None: of no team."""

    docs: list[Document]
    teams: list[int | None]


class RandomBits(Protocol):
    """A source of randomness, such as `random.Random(seed)` or the module `random`."""

    def getrandbits(self, k: int, /) -> int:
        """An integer of k random bits."""
        ...


Interleave = Callable[[Sequence[Any], Sequence[Any], int, RandomBits], Interleaved[Any]]
"""An interleaving method: two rankings, the length of the list, and a source of randomness."""

Multileave = Callable[[Sequence[Sequence[Any]], int, RandomBits], Multileaved[Any]]
"""A multileaving method: the same for two or more rankings."""

Chances = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], list[float | None]]
"""The `chances` of the list that a method made of two rankings."""


def below(n: int, rng: RandomBits) -> int:
    """A uniform integer from 0 to n - 1; for n = 1 nothing is drawn.

    Draws as many bits as n - 1 has until they are below n: on average twice at most.

    >>> from random import Random
    >>> rng = Random(7)
    >>> [below(6, rng) for _ in range(10)]
    [2, 1, 3, 5, 0, 0, 4, 0, 2, 4]
    """
    if n == 1:
        return 0
    bits = (n - 1).bit_length()
    while (drawn := rng.getrandbits(bits)) >= n:
        pass
    return drawn


def uniform(rng: RandomBits) -> float:
    """A uniform number in [0, 1), a multiple of 2**-53; draws 53 bits."""
    return rng.getrandbits(53) * 2.0**-53


class Remaining(Generic[Document]):
    """The documents of a ranking that are not in the list `shown` yet, from the top.

    The caller adds to `shown`. Visits each document of the ranking a few times at most, however
    often it is called.
    """

    def __init__(self, ranking: Sequence[Document], shown: Container[Document]) -> None:
        self._ranking = ranking
        self._shown = shown
        self._rank = 0

    def left(self) -> bool:
        """Whether a document remains."""
        self._rank = self._next(self._rank)
        return self._rank < len(self._ranking)

    def top(self) -> Document:
        """The topmost remaining document; only after `left` returned true."""
        return self._ranking[self._rank]

    def has_another(self) -> bool:
        """Whether a second document remains; only after `left` returned true."""
        return self._next(self._rank + 1) < len(self._ranking)

    def _next(self, rank: int) -> int:
        """The first rank from `rank` on whose document is not in the list."""
        while rank < len(self._ranking) and self._ranking[rank] in self._shown:
            rank += 1
        return rank


def fill(shown: dict[Document, Team], length: int, *remaining: Remaining[Document]) -> None:
    """Add documents of no team, of one ranking after the other, until the list is complete."""
    for ranking in remaining:
        while len(shown) < length and ranking.left():
            shown[ranking.top()] = None


def at_rank(entries: Sequence[Entry], rank: int) -> Entry:
    """The entry at a rank; IndexError if it is outside the list: -1 is not its last rank."""
    if rank < 0:
        raise IndexError(f"a rank must be at least 0 (found {rank})")
    return entries[rank]


def check(length: int, **rankings: Sequence[Document]) -> None:
    """Refuse, with InterleavingError, a ranking that `check_unique` refuses, or an invalid length.

    The names of the rankings are those in the error sentence.
    """
    if not isinstance(length, Integral):  # numpy's integers are Integral, too
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
    """Refuse, with InterleavingError, a ranking of this name that has a document twice.

    So is one that `check_ids` refuses.
    """
    if len(check_ids(name, ranking)) == len(ranking):
        return
    ranks: dict[Document, int] = {}
    for rank, document in enumerate(ranking):
        if document in ranks:
            raise InterleavingError(
                f"{name} must have each document once (found {document!r} at ranks"
                f" {ranks[document]} and {rank})."
            )
        ranks[document] = rank


def check_ids(name: str, ranking: Sequence[Document]) -> set[Document]:
    """The documents of a ranking; InterleavingError if it is no sequence, or has no hashable ids.

    A sequence of any class is allowed, such as an array of numpy.
    """
    if not _is_sequence(ranking):
        raise InterleavingError(
            f"{name} must be a sequence of document ids, such as a list "
            f"(found {type(ranking).__name__})."
        )
    try:
        return set(ranking)
    except TypeError:
        for rank, document in enumerate(ranking):
            try:
                hash(document)
            except TypeError:
                raise InterleavingError(
                    f"{name} must have hashable document ids "
                    f"(found {type(document).__name__} at rank {rank})."
                ) from None
        raise


def _is_sequence(found: object) -> bool:
    try:
        iter(found)  # type: ignore[call-overload]
    except TypeError:  # such as a class, or an array without dimensions
        return False
    return hasattr(found, "__getitem__") and not isinstance(found, Mapping)


def check_shown(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> None:
    """Refuse, with InterleavingError, a list with documents of neither ranking, or one twice."""
    check_unique("docs", docs)
    candidates = {*list_a, *list_b}
    for document in docs:
        if document not in candidates:
            raise InterleavingError(
                f"docs must come from the rankings (found {document!r}, which is in neither)."
            )


def ranks_of(ranking: Sequence[Document]) -> dict[Document, int]:
    """The rank of each document, from 0."""
    return {document: rank for rank, document in enumerate(ranking)}


def contested(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> int:
    """The number of upper ranks that were filled while both rankings had documents left.

    Once a ranking is exhausted, only the other one can fill the list. Clicks on these documents say
    nothing about which ranker is better and count for neither side.

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
