"""Team-draft interleaving: two rankers pick documents in turn, as captains pick players."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

Document = TypeVar("Document", bound=Hashable)

Team = Literal["a", "b"] | None
"""Whose document it is; None for nobody's."""


class RandomBits(Protocol):
    """A source of randomness; `random.Random(seed)` is one, and so is the module `random`."""

    def getrandbits(self, k: int, /) -> int:
        """An integer of k random bits."""
        ...


class Interleaved(NamedTuple, Generic[Document]):
    """A list to be shown.

    Attributes:
        docs: the documents, the first on top; none of them twice.
        teams: per rank, whose document stands there, as an `interleaving` record has it.
    """

    docs: list[Document]
    teams: list[Team]


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    In each round a fair coin says who picks first; then each side adds the topmost document of its
    ranking that is not in the list yet, and that document is of its team. Documents that only one
    side could still add fill the list and are of no team. So at each rank the document is as
    likely of one team as of the other, and clicks that do not care what they click on favour
    neither side; the teams differ by one document at most.

    Args:
        list_a: document ids of ranker a, the best first; of any kind that can be compared, as
            strings or integers.
        list_b: those of ranker b.
        length: how many documents to show, from 0; fewer where the lists have fewer.
        rng: one bit of it is drawn for each round in which both sides have something to pick.

    Raises:
        ValueError: a ranking has a document twice, or the length is below 0.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
    Interleaved(docs=['d1', 'd2', 'd3', 'd4'], teams=['a', 'b', 'a', 'b'])

    Source: Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?",
    CIKM 2008, Algorithm 2. The paper's list ends when one side has
    nothing left.
    """
    if length < 0:
        raise ValueError(f"the length of an interleaved list must be at least 0 (found {length}).")
    _check_unique("list_a", list_a)
    _check_unique("list_b", list_b)
    shown: dict[Document, Team] = {}  # keeps the order in which documents were picked
    ours, theirs = _Picks(list_a, shown), _Picks(list_b, shown)
    while len(shown) < length and (ours.left() or theirs.left()):
        if not theirs.left():
            shown[ours.top()] = None
        elif not ours.left():
            shown[theirs.top()] = None
        elif len(shown) < length - 1 and _is_uneven(ours, theirs):
            shown[ours.top()] = None
        elif rng.getrandbits(1):
            _play_round(shown, length, (ours, "a"), (theirs, "b"))
        else:
            _play_round(shown, length, (theirs, "b"), (ours, "a"))
    return Interleaved(list(shown), list(shown.values()))


def _is_uneven(ours: _Picks[Document], theirs: _Picks[Document]) -> bool:
    """Whether one side alone could pick second: both want the same, and it has nothing else."""
    return ours.top() == theirs.top() and ours.has_another() != theirs.has_another()


def _play_round(
    shown: dict[Document, Team],
    length: int,
    first: tuple[_Picks[Document], Team],
    second: tuple[_Picks[Document], Team],
) -> None:
    """One pick of each side, as far as there is room and there are documents."""
    for picks, team in (first, second):
        if len(shown) < length and picks.left():
            shown[picks.top()] = team


class _Picks(Generic[Document]):
    """What a side may still pick, its topmost document first."""

    def __init__(self, ranking: Sequence[Document], shown: dict[Document, Team]) -> None:
        self._ranking = ranking
        self._shown = shown
        self._rank = 0

    def left(self) -> bool:
        """Whether there is a document that is not shown yet."""
        while self._rank < len(self._ranking) and self._ranking[self._rank] in self._shown:
            self._rank += 1
        return self._rank < len(self._ranking)

    def top(self) -> Document:
        """The topmost of them; asked only after `left`."""
        return self._ranking[self._rank]

    def has_another(self) -> bool:
        """Whether there is one more of them below the topmost."""
        return any(document not in self._shown for document in self._ranking[self._rank + 1 :])


def _check_unique(name: str, ranking: Sequence[Document]) -> None:
    """Refuse a document that stands in a ranking twice."""
    if len(set(ranking)) == len(ranking):
        return
    ranks: dict[Document, int] = {}
    for rank, document in enumerate(ranking):
        if document in ranks:
            raise ValueError(
                f"{name} must have each document once (found {document!r} at ranks"
                f" {ranks[document]} and {rank})."
            )
        ranks[document] = rank
