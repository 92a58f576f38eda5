"""Team-draft interleaving: two rankers pick documents in turn, as captains pick players."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.interleaving.bits import RandomBits
from streamduel.interleaving.interleaved import Document, Interleaved, Team, check
from streamduel.interleaving.picks import Picks

__all__ = ["Document", "Interleaved", "RandomBits", "Team", "interleave"]


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    In each round a fair coin says who picks first; then each side adds the topmost document of its
    ranking that is not in the list yet, and that document is of its team. Documents that only one
    side could still add fill the list and are of no team. So at each rank the document is as
    likely of one team as of the other, and clicks that do not care what they click on favour
    neither side; the teams differ by one document at most. Where a ranking runs out inside the
    list, this holds for each rank alone, and several such clicks may favour a side a little.

    Args:
        list_a: document ids of ranker a, the best first; of any kind that can be compared, as
            strings or integers.
        list_b: those of ranker b.
        length: how many documents to show, from 0; fewer where the lists have fewer.
        rng: one bit of it is drawn for each round in which both sides have something to pick.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is below 0.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
    Interleaved(docs=['d1', 'd2', 'd3', 'd4'], teams=['a', 'b', 'a', 'b'])

    Source: Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?",
    CIKM 2008, Algorithm 2. The paper's list ends when one side has nothing left.
    """
    check(length, list_a=list_a, list_b=list_b)
    shown: dict[Document, Team] = {}  # keeps the order in which documents were picked
    ours, theirs = Picks(list_a, shown), Picks(list_b, shown)
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


def _is_uneven(ours: Picks[Document], theirs: Picks[Document]) -> bool:
    """Whether one side alone could pick second: both want the same, and it has nothing else."""
    return ours.top() == theirs.top() and ours.has_another() != theirs.has_another()


def _play_round(
    shown: dict[Document, Team],
    length: int,
    first: tuple[Picks[Document], Team],
    second: tuple[Picks[Document], Team],
) -> None:
    """One pick of each side, as far as there is room and there are documents."""
    for picks, team in (first, second):
        if len(shown) < length and picks.left():
            shown[picks.top()] = team
