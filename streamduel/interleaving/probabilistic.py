"""Probabilistic interleaving: documents are drawn at random, upper ranks most likely."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from streamduel.interleaving.base import (
    Document,
    Interleaved,
    RandomBits,
    Remaining,
    Team,
    check,
    check_shown,
    fill,
)
from streamduel.interleaving.credit.team_chances import leads
from streamduel.preference.logarithm import ln


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    At each rank a fair coin decides which side draws. That side draws a document of its ranking
    that is not in the list yet, the one at rank r with a probability proportional to 1 / r³ (the
    paper's softmax with τ = 3: of ten documents the first is drawn with probability 0.83, the
    second with 0.10), and the document joins its team. At each rank the document is equally likely
    to be of either team, whatever the teams of the others, down to the length of the shorter
    ranking: so far neither ranking can be exhausted. Documents below have no team; the coins go on
    until a ranking is exhausted, and the other one fills the list.

    Any document may come from either side, so that `expected_credit` learns more from a click than
    its team. In exchange, users may see a list that neither ranker would make.

    Args:
        list_a: document ids of ranker a, the best first; any hashable type.
        list_b: document ids of ranker b.
        length: documents to show, from 0; fewer where the rankings have fewer.
        rng: 53 bits are drawn for each document of both rankings, then one bit for each rank at
            which both sides have documents left.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is negative.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
    Interleaved(docs=['d1', 'd2', 'd4', 'd3'], teams=['a', 'a', 'b', None])

    Source: Hofmann, Whiteson and de Rijke, "A Probabilistic Method for Inferring Preferences from
    Clicks", CIKM 2011. Ranks are those of the whole ranking, also after documents were drawn.
    """
    check(length, list_a=list_a, list_b=list_b)
    shown: dict[Document, Team] = {}  # in the order of draws
    in_a, in_b = Remaining(_draw(list_a, rng), shown), Remaining(_draw(list_b, rng), shown)
    fair = min(len(list_a), len(list_b))
    while len(shown) < length and in_a.left() and in_b.left():
        team: Team = "a" if rng.getrandbits(1) else "b"
        document = (in_a if team == "a" else in_b).top()
        shown[document] = team if len(shown) < fair else None
    fill(shown, length, in_a, in_b)
    return Interleaved(list(shown), list(shown.values()))


def _draw(ranking: Sequence[Document], rng: RandomBits) -> list[Document]:
    """All documents of a ranking in the order of successive draws without replacement.

    Each document gets an exponential arrival time of rate 1 / r³. The next one to arrive is any of
    the remaining documents with a probability proportional to its rate, also when other documents
    were removed: exponential times have no memory. One sort replaces all draws.
    """
    draws = [(rng.getrandbits(53) + 1) * 2.0**-53 for _ in ranking]  # in (0, 1]
    weights = _weights(len(ranking))
    arrivals = [-ln(draw) / weight for draw, weight in zip(draws, weights, strict=True)]
    return [ranking[rank] for rank in sorted(range(len(ranking)), key=arrivals.__getitem__)]


def _weights(n: int) -> list[float]:
    """1 / r³ for the ranks from 1 to n; the bits of a float power would vary between machines."""
    return [1 / (rank * rank * rank) for rank in map(float, range(1, n + 1))]


def expected_credit(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    docs: Sequence[Document],
    ranks: Sequence[int],
) -> float:
    """The mean of `click_count` over all teams that the list may have come from.

    The teams that were drawn are replaced by all possible ones, each with its probability given the
    list. The expectation is the same and the variance smaller, so fewer impressions are needed.

    Returns:
        The probability that side a has more clicks, plus half of that of a tie: a share of a win.

    >>> expected_credit(["d1", "d2", "d3"], ["d2", "d1", "d3"], ["d1", "d2", "d3"], [0])
    0.8888888888888888
    >>> expected_credit(["d1", "d2", "d3"], ["d2", "d1", "d3"], ["d1", "d2", "d3"], [2])
    0.5

    Source: Hofmann, Whiteson and de Rijke, CIKM 2011, the comparison that marginalises over
    assignments; their outcome of 1, 0 or -1 is 1, 0.5 or 0 here.
    """
    distribution = leads(chances(list_a, list_b, docs), ranks)
    ahead = sum(probability for lead, probability in distribution.items() if lead > 0)
    return ahead + distribution.get(0, 0.0) / 2


def chances(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> list[float | None]:
    """The probability of each rank that side a drew the document; None where it has no team.

    The field `chances` of a record, for the credit function `probabilistic`.

    >>> chances(["d1", "d2"], ["d2", "d1"], ["d1", "d2"])
    [0.8888888888888888, 0.5]
    """
    check_shown(list_a, list_b, docs)
    fair = min(len(list_a), len(list_b), len(docs))
    shares_a, shares_b = _shares(list_a, docs), _shares(list_b, docs)
    drawn: list[float | None] = [
        of_a / (of_a + of_b) for of_a, of_b in zip(shares_a[:fair], shares_b[:fair], strict=True)
    ]
    return drawn + [None] * (len(docs) - fair)


def _shares(ranking: Sequence[Document], docs: Sequence[Document]) -> list[float]:
    """For each shown document the probability with which the ranking would draw it there."""
    weights = dict(zip(ranking, _weights(len(ranking)), strict=True))
    shown = [weights.pop(document, 0.0) for document in docs]
    # From below, so that nothing is subtracted and the smallest weights count, too.
    left = fsum(weights.values())
    shares = []
    for weight in reversed(shown):
        left += weight
        shares.append(weight / left if left else 0.0)
    return shares[::-1]
