"""Estimating from clicks the probability that users look at a rank."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from streamduel.errors import InterleavingError
from streamduel.interleaving.base import at_rank

_Counts = Mapping[Hashable, Mapping[int, int]]
"""Counts by document and rank."""


def estimate_propensities(
    impressions: Iterable[tuple[Sequence[Hashable], Iterable[int]]], length: int
) -> list[float]:
    """Estimate the propensities for `position_debiased` from interleaved lists and their clicks.

    They are relative to the largest, which is 1.

    Interleaving shows the same document sometimes at one rank, sometimes at the next. If it gets
    half as many clicks there, half as many users look there. All documents that were shown at both
    ranks are compared in this way (the Mantel-Haenszel ratio, which is also valid where each was
    shown a few times only), and the ratios are multiplied from rank to rank.

    The position-based model is assumed: a user clicks when they look at the rank and like the
    document, whatever the others are. Users who stop after a good document do not behave like that.
    Errors accumulate down the list: use tens of thousands of clicks.

    Args:
        impressions: for each impression the documents shown and the clicked ranks. Relevance
            depends on the query: give pairs (query, document), unless all have one query.
        length: the number of ranks to estimate, from 1.

    Raises:
        IndexError: a rank is outside its list.
        InterleavingError: no document was shown and clicked at two ranks that are compared.

    >>> up, down = ["d1", "d2"], ["d2", "d1"]
    >>> estimate_propensities([(up, [0]), (up, [0]), (up, [1]), (down, [0]), (down, [1])], 2)
    [1.0, 0.7142857142857143]

    Source: Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating Position Bias without
    Intrusive Interventions", WSDM 2019, by chaining adjacent ranks; Mantel and Haenszel,
    "Statistical Aspects of the Analysis of Data from Retrospective Studies", 1959.
    """
    shown: dict[Hashable, Counter[int]] = defaultdict(Counter)
    clicked: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for docs, ranks in impressions:
        for rank, document in enumerate(docs[:length]):
            shown[document][rank] += 1
        for rank in set(ranks):  # the model has one click on a document, or none
            clicked[at_rank(docs, rank)][rank] += 1
    found = [1.0]
    for rank in range(1, length):
        found.append(found[-1] * _ratio(shown, clicked, rank))
    largest = max(found)
    return [propensity / largest for propensity in found]


def _ratio(shown: _Counts, clicked: _Counts, rank: int) -> float:
    """The propensity of a rank relative to the rank above."""
    above = below = 0.0
    for document, times in shown.items():
        n_above, n_below = times.get(rank - 1, 0), times.get(rank, 0)
        if n_above and n_below:
            clicks = clicked.get(document, {})
            above += clicks.get(rank - 1, 0) * n_below / (n_above + n_below)
            below += clicks.get(rank, 0) * n_above / (n_above + n_below)
    if not above or not below:
        raise InterleavingError(
            f"rank {rank} cannot be compared with rank {rank - 1}: of the documents shown at both, "
            f"none was clicked at rank {rank if above else rank - 1}; give more impressions, or a "
            f"length of {rank}."
        )
    return below / above
