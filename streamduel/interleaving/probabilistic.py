"""Probabilistic interleaving: documents are drawn, the upper ones of a ranking most likely."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from streamduel.interleaving.bits import RandomBits
from streamduel.interleaving.credit.by_chance import leads
from streamduel.interleaving.interleaved import (
    Document,
    Interleaved,
    Team,
    check,
    contested,
)
from streamduel.interleaving.picks import Picks
from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Floats


def interleave(
    list_a: Sequence[Document], list_b: Sequence[Document], length: int, rng: RandomBits
) -> Interleaved[Document]:
    """Interleave two rankings.

    At each rank a fair coin says whose turn it is. That side draws a document of its ranking that
    is not in the list yet, the one at rank r with a probability proportional to 1 / r³ (the paper's
    softmax with τ = 3: of ten documents the first comes with probability 0.83, the second with
    0.10), and the document is of its team. Documents that only one side could still draw fill the
    list and are of no team. So at each rank the document is as likely of one team as of the other.

    Any document may come from either side, which lets `expected_credit` learn from a click more
    than its team. The price is that users may see a list that neither ranker would make.

    Args:
        list_a: document ids of ranker a, the best first, of any hashable kind.
        list_b: those of ranker b.
        length: how many documents to show, from 0; fewer where the lists have fewer.
        rng: 53 bits of it are drawn for each document of both rankings, then one bit for each rank
            at which both sides have something left.

    Raises:
        InterleavingError: a ranking has a document twice, or the length is below 0.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
    Interleaved(docs=['d1', 'd2', 'd4', 'd3'], teams=['a', 'a', 'b', None])

    Source: Hofmann, Whiteson and de Rijke, "A Probabilistic Method for Inferring Preferences from
    Clicks", CIKM 2011. Ranks are those of the whole ranking, whatever was taken from it.
    """
    check(length, list_a=list_a, list_b=list_b)
    shown: dict[Document, Team] = {}  # keeps the order in which documents were drawn
    ours, theirs = Picks(_draw(list_a, rng), shown), Picks(_draw(list_b, rng), shown)
    while len(shown) < length and (ours.left() or theirs.left()):
        if not theirs.left():
            shown[ours.top()] = None
        elif not ours.left():
            shown[theirs.top()] = None
        elif rng.getrandbits(1):
            shown[ours.top()] = "a"
        else:
            shown[theirs.top()] = "b"
    return Interleaved(list(shown), list(shown.values()))


def _draw(ranking: Sequence[Document], rng: RandomBits) -> list[Document]:
    """All documents of a ranking, as one draw after the other would bring them.

    Each document has a clock that rings after an exponential time of rate 1 / r³. The one that
    rings next is any of the rest with a probability proportional to its rate, also if some of the
    rest are taken away unheard: clocks have no memory. One sorting replaces all draws.
    """
    # From above 0 to 1.
    draws = np.array([rng.getrandbits(53) + 1 for _ in ranking], dtype=np.float64) * 2.0**-53
    rings = -ln_each(draws) / _weights(len(ranking))
    return [ranking[rank] for rank in np.argsort(rings, kind="stable").tolist()]


def _weights(n: int) -> Floats:
    """1 / r³ for the ranks from 1 to n; without a power, whose bits differ between machines."""
    ranks = np.arange(1, n + 1, dtype=np.float64)
    return 1 / (ranks * ranks * ranks)


def expected_credit(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    docs: Sequence[Document],
    ranks: Sequence[int],
) -> float:
    """What `click_count` gives on average over all teams that may have made the list.

    Which side drew a document was chance: often the other one would have drawn it too. So the one
    assignment that happened is replaced by all that could have, each by its probability given the
    list. The expectation is the same, and the variance smaller: fewer impressions tell as much.

    Args:
        list_a: document ids of ranker a, the best first.
        list_b: those of ranker b.
        docs: what `interleave` made of them.
        ranks: the clicked ranks, from 0; a rank that is there twice counts twice.

    Returns:
        The probability that side a has more clicks, plus half of that of a tie: a share of a win.

    Raises:
        IndexError: a rank lies outside the list.
        InterleavingError: a shown document is in neither ranking, or was shown twice.

    >>> expected_credit(["d1", "d2", "d3"], ["d2", "d1", "d3"], ["d1", "d2", "d3"], [0])
    0.8888888888888888
    >>> expected_credit(["d1", "d2", "d3"], ["d2", "d1", "d3"], ["d1", "d2", "d3"], [2])
    0.5

    Source: Hofmann, Whiteson and de Rijke, CIKM 2011, the comparison that marginalises over
    assignments; their outcome of 1, 0 or -1 is 1, 0.5 or 0 here.
    """
    likely = leads(chances(list_a, list_b, docs), ranks)
    ahead = sum(probability for lead, probability in likely.items() if lead > 0)
    return ahead + likely.get(0, 0.0) / 2


def chances(
    list_a: Sequence[Document], list_b: Sequence[Document], docs: Sequence[Document]
) -> list[float | None]:
    """Per rank, how likely it is that side a drew the document; None where nobody did.

    What a record logs as `chances`, for the credit function `probabilistic`.

    Args:
        list_a: document ids of ranker a, the best first.
        list_b: those of ranker b.
        docs: what `interleave` made of them.

    Raises:
        InterleavingError: a shown document is in neither ranking, or was shown twice.

    >>> chances(["d1", "d2"], ["d2", "d1"], ["d1", "d2"])
    [0.8888888888888888, 0.5]
    """
    upper = contested(list_a, list_b, docs)
    shares_a, shares_b = _shares(list_a, docs), _shares(list_b, docs)
    drawn: list[float | None] = [
        ours / (ours + theirs)
        for ours, theirs in zip(shares_a[:upper], shares_b[:upper], strict=True)
    ]
    return drawn + [None] * (len(docs) - upper)


def _shares(ranking: Sequence[Document], docs: Sequence[Document]) -> list[float]:
    """Per shown rank, the document's share in what the ranking still had when it was drawn."""
    weights = dict(zip(ranking, _weights(len(ranking)).tolist(), strict=True))
    shown = [weights.pop(document, 0.0) for document in docs]
    # From below, so that nothing is subtracted and the least weights count too.
    left = fsum(weights.values())
    shares = []
    for weight in reversed(shown):
        left += weight
        shares.append(weight / left if left else 0.0)
    return shares[::-1]
