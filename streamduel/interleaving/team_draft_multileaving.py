"""Team-draft multileaving: two or more rankers pick documents in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from streamduel.errors import InterleavingError
from streamduel.interleaving.base import (
    Document,
    Multileaved,
    RandomBits,
    Remaining,
    at_rank,
    below,
    check,
)
from streamduel.interleaving.credit.base import winner


def multileave(
    rankings: Sequence[Sequence[Document]], length: int, rng: RandomBits
) -> Multileaved[Document]:
    """Make one list of k rankings, so that one impression compares all of them.

    In each round the rankers pick in random order; each adds the topmost document of its ranking
    that is not in the list yet, and the document joins its team. At each rank the document is
    equally likely to be of each team, down to the length of the shortest ranking: so far no ranker
    can be exhausted. Documents below have no team.

    Each ranker contributes length / k documents: with more rankers than ranks, some contribute
    none. `duels_of` turns an impression into duels.

    Args:
        rankings: the document ids of each ranker, the best first; any hashable type.
        length: documents to show, from 0; fewer where the rankings have fewer.
        rng: the order of each round is drawn from it.

    Raises:
        InterleavingError: there are fewer than two rankings, one has a document twice, or the
            length is negative.

    >>> from random import Random
    >>> multileave([["d1", "d2", "d3"], ["d2", "d4", "d1"], ["d5", "d1", "d2"]], 4, Random(2))
    Multileaved(docs=['d1', 'd5', 'd2', 'd3'], teams=[0, 2, 1, None])

    Source: Schuth, Sietsma, Whiteson, Lefortier and de Rijke, "Multileaved Comparisons for Fast
    Online Evaluation", CIKM 2014.
    """
    if len(rankings) < 2:
        raise InterleavingError(
            f"rankings must be of two rankers at least (found {len(rankings)})."
        )
    check(length, **{f"rankings[{number}]": each for number, each in enumerate(rankings)})
    shown: dict[Document, int | None] = {}  # in the order of picks
    remaining = [Remaining(ranking, shown) for ranking in rankings]
    fair = min(map(len, rankings))
    while len(shown) < length and any(each.left() for each in remaining):
        for number in _order(len(remaining), rng):
            if len(shown) < length and remaining[number].left():
                shown[remaining[number].top()] = number if len(shown) < fair else None
    return Multileaved(list(shown), list(shown.values()))


def _order(n: int, rng: RandomBits) -> Iterator[int]:
    """The integers below n in random order, drawn one by one."""
    rest = list(range(n))
    while rest:
        other = below(len(rest), rng)
        rest[other], rest[-1] = rest[-1], rest[other]
        yield rest.pop()


class Duel(NamedTuple):
    """The outcome of an impression for two rankings, by index; a tie is 0.5 wins of the first."""

    first: int
    second: int
    first_wins: float


def duels_of(n_rankers: int, teams: Sequence[int | None], ranks: Sequence[int]) -> list[Duel]:
    """The duels of all pairs of rankers in one impression.

    Of two rankers, the one with more clicks on its documents wins; equal numbers are a tie;
    repeated ranks count repeatedly. Write a `duel` record for each. The duels of one impression are
    not independent: they count the same clicks.

    Raises:
        IndexError: a rank is outside the list.

    >>> duels_of(3, [0, 1, 2, None], [1, 3])
    [Duel(first=0, second=1, first_wins=0.0), Duel(first=0, second=2, first_wins=0.5),
     Duel(first=1, second=2, first_wins=1.0)]

    Source: Schuth et al., CIKM 2014.
    """
    clicks = [0] * n_rankers
    for rank in ranks:
        team = at_rank(teams, rank)
        if team is not None:
            clicks[team] += 1
    return [
        Duel(first, second, winner(clicks[first] - clicks[second]))
        for first, second in combinations(range(n_rankers), 2)
    ]
