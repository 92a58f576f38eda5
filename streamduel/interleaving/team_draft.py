"""Team-draft interleaving: two rankers pick documents in turn, as captains pick players."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.interleaving.base import (
    Document,
    Interleaved,
    RandomBits,
    Remaining,
    Team,
    check,
    fill,
)


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    In each round a fair coin decides which side picks first; then each side adds the topmost
    document of its ranking that is not in the list yet, and the document joins its team. Documents
    that only one side could still add fill the list and have no team. At each rank the document is
    therefore equally likely to be of either team, and clicks at random favour neither side; the
    sizes of the teams differ by one at most. Where a ranking is exhausted within the list, this
    holds for each rank alone, and several clicks at random may favour a side slightly.

    Args:
        list_a: document ids of ranker a, the best first; any hashable type.
        list_b: document ids of ranker b.
        length: documents to show, from 0; fewer where the rankings have fewer.
        rng: one bit is drawn for each round in which both sides can pick.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is negative.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
    Interleaved(docs=['d1', 'd2', 'd3', 'd4'], teams=['a', 'b', 'a', 'b'])

    Source: Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?",
    CIKM 2008, Algorithm 2. The paper's list ends when one side has no documents left.
    """
    check(length, list_a=list_a, list_b=list_b)
    shown: dict[Document, Team] = {}  # in the order of picks
    in_a, in_b = Remaining(list_a, shown), Remaining(list_b, shown)
    while len(shown) < length and in_a.left() and in_b.left():
        if len(shown) < length - 1 and _is_uneven(in_a, in_b):
            shown[in_a.top()] = None
            continue
        sides: list[tuple[Remaining[Document], Team]] = [(in_a, "a"), (in_b, "b")]
        for remaining, team in sides if rng.getrandbits(1) else reversed(sides):
            if len(shown) < length and remaining.left():
                shown[remaining.top()] = team
    fill(shown, length, in_a, in_b)
    return Interleaved(list(shown), list(shown.values()))


def _is_uneven(in_a: Remaining[Document], in_b: Remaining[Document]) -> bool:
    """Whether both sides want the same document and only one of them has another one."""
    return in_a.top() == in_b.top() and in_a.has_another() != in_b.has_another()
