"""Team-draft multileaving: any number of rankers pick documents in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Generic, NamedTuple

from streamduel.errors import InterleavingError
from streamduel.interleaving.bits import RandomBits, below
from streamduel.interleaving.interleaved import Document, check
from streamduel.interleaving.picks import Picks


class Multileaved(NamedTuple, Generic[Document]):
    """A list to be shown, made of several rankings.

    Attributes:
        docs: the documents, the first on top; none of them twice.
        teams: per rank, the number of the ranking whose document stands there, from 0; None for
            nobody's.
    """

    docs: list[Document]
    teams: list[int | None]


def multileave(
    rankings: Sequence[Sequence[Document]], length: int, rng: RandomBits
) -> Multileaved[Document]:
    """Make one list of k rankings, so that one impression compares all of them.

    In each round the rankers pick in an order drawn at random; each adds the topmost document of
    its ranking that is not in the list yet, and that document is of its team. So at each rank the
    document is equally likely of each team. This holds as far down as the shortest ranking is long,
    because so far nobody can run out of documents; what fills the list below is of no team.

    Each ranker has length / k documents in a list: with more rankers than ranks, some are left out
    of it. `duels_of` makes duels of an impression.

    Args:
        rankings: of each ranker the document ids, the best first, of any hashable kind.
        length: how many documents to show, from 0; fewer where the rankings have fewer.
        rng: what the order of each round is drawn from.

    Raises:
        InterleavingError: there are fewer than two rankings, one has a document twice, or the
            length is below 0.

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
    shown: dict[Document, int | None] = {}  # keeps the order in which documents were picked
    picks = [Picks(ranking, shown) for ranking in rankings]
    fair = min(map(len, rankings))
    while len(shown) < length and any(each.left() for each in picks):
        for number in _order(len(picks), rng):
            if len(shown) < length and picks[number].left():
                shown[picks[number].top()] = number if len(shown) < fair else None
    return Multileaved(list(shown), list(shown.values()))


def _order(n: int, rng: RandomBits) -> Iterator[int]:
    """The integers below n, in a random order, each drawn when it is asked for."""
    rest = list(range(n))
    while rest:
        other = below(len(rest), rng)
        rest[other], rest[-1] = rest[-1], rest[other]
        yield rest.pop()


class Duel(NamedTuple):
    """What an impression says about two rankers.

    Attributes:
        first: the number of one ranking.
        second: that of another, a larger one.
        first_wins: 1.0, 0.0, or 0.5 for a tie.
    """

    first: int
    second: int
    first_wins: float


def duels_of(n_rankers: int, teams: Sequence[int | None], ranks: Sequence[int]) -> list[Duel]:
    """The duels of all pairs of rankers that one impression decides.

    Of two rankers, the one with more clicks on its documents wins; equally many are a tie. Each
    duel makes a `duel` record of its own. The duels of one impression hang together, as they
    are of the same clicks.

    Args:
        n_rankers: how many there are.
        teams: per rank, whose document stood there.
        ranks: the clicked ranks, from 0; a rank that is there twice counts twice.

    Raises:
        IndexError: a rank lies outside the list.

    >>> duels_of(3, [0, 1, 2, None], [1, 3])
    [Duel(first=0, second=1, first_wins=0.0), Duel(first=0, second=2, first_wins=0.5),
     Duel(first=1, second=2, first_wins=1.0)]

    Source: Schuth et al., CIKM 2014.
    """
    clicks = [0] * n_rankers
    for rank in ranks:
        team = teams[rank]
        if team is not None:
            clicks[team] += 1
    leads = {
        (first, second): clicks[first] - clicks[second]
        for first, second in combinations(range(n_rankers), 2)
    }
    return [
        Duel(first, second, 0.5 if lead == 0 else float(lead > 0))
        for (first, second), lead in leads.items()
    ]
