"""Balanced interleaving: one coin flip, then both rankings are read at the same pace."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from streamduel.interleaving.base import (
    Document,
    Interleaved,
    RandomBits,
    Team,
    at_rank,
    check,
    contested,
    ranks_of,
)
from streamduel.interleaving.credit.base import winner


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    A fair coin decides which ranking goes first. Then both rankings are read from the top, in turn,
    and documents that are not in the list yet are added. The upper k documents of either ranking
    are among the upper 2k shown, and there are at most two possible lists, so users see little that
    differs from either ranking.

    `teams` names the ranking that has the document higher, None where both have it at the same
    rank. With one click, counting clicks by team is the comparison of the papers; with several
    clicks it is close to it, and `credit` is exact. Documents shown after one ranking is exhausted
    have no team.

    **The method is biased.** With rankings (1, 2, 3) and (2, 3, 1), a user who clicks at random
    prefers the second one in two of three cases. Prefer team draft, unless the list must look like
    one of the two rankings.

    Args:
        list_a: document ids of ranker a, the best first; any hashable type.
        list_b: document ids of ranker b.
        length: documents to show, from 0; fewer where the rankings have fewer.
        rng: one bit is drawn.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is negative.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 3, Random(2))
    Interleaved(docs=['d1', 'd2', 'd4'], teams=['a', 'b', 'b'])

    Source: Joachims, "Evaluating Retrieval Performance Using Clickthrough Data", 2003; Radlinski,
    Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?", CIKM 2008,
    Algorithm 1. Their list ends where one ranking does.
    """
    check(length, list_a=list_a, list_b=list_b)
    a_first = rng.getrandbits(1)
    first, second = (list_a, list_b) if a_first else (list_b, list_a)
    shown: dict[Document, None] = {}  # in the order of insertion
    for rank in range(max(len(first), len(second))):
        for ranking in (first, second):
            if rank < len(ranking) and len(shown) < length:
                shown.setdefault(ranking[rank])
        if len(shown) == length:
            break
    docs = list(shown)
    return Interleaved(docs, _teams(list_a, list_b, docs))


def _teams(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> list[Team]:
    """For each rank the side that has the document higher; None below the contested ranks."""
    in_a, in_b = ranks_of(list_a), ranks_of(list_b)
    upper = contested(list_a, list_b, docs)
    teams: list[Team] = []
    for document in docs[:upper]:
        lead = in_b.get(document, inf) - in_a.get(document, inf)
        teams.append("a" if lead > 0 else "b" if lead < 0 else None)
    return teams + [None] * (len(docs) - upper)


def credit(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    docs: Sequence[Document],
    ranks: Sequence[int],
) -> float:
    """The side with more clicked documents among its upper k wins; equal numbers are a tie.

    k is the higher of the two ranks of the lowest clicked document: the user is assumed to have
    read both rankings that far. Clicks below the contested ranks count for neither side. The result
    is 1.0 when side a wins, 0.0 when side b does, and 0.5 for a tie; a `duel` record can carry it.

    >>> credit([1, 2, 3], [2, 3, 1], [1, 2, 3], [2])
    0.0
    >>> credit([1, 2, 3], [2, 3, 1], [1, 2, 3], [0, 2])
    0.5

    Source: Joachims 2003; Chapelle, Joachims, Radlinski and Yue, "Large-Scale Validation and
    Analysis of Interleaved Search Evaluation", ACM TOIS 30(1), 2012.
    """
    upper = contested(list_a, list_b, docs)
    clicked = [(at_rank(docs, rank), rank) for rank in ranks]  # of all ranks: raises IndexError
    clicked = [(document, rank) for document, rank in clicked if rank < upper]
    if not clicked:
        return 0.5
    in_a, in_b = ranks_of(list_a), ranks_of(list_b)
    lowest, _ = max(clicked, key=lambda click: click[1])
    k = min(in_a.get(lowest, inf), in_b.get(lowest, inf))
    lead = sum(
        (in_a.get(document, inf) <= k) - (in_b.get(document, inf) <= k) for document, _ in clicked
    )
    return winner(lead)
