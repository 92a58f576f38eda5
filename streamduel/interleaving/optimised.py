"""Optimised interleaving: how often to show which list, as the solution of a linear programme."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Generic, Literal, get_args

import numpy as np

from streamduel.errors import InterleavingError, nearest
from streamduel.interleaving import team_draft
from streamduel.interleaving.bits import RandomBits, uniform
from streamduel.interleaving.interleaved import (
    Document,
    Interleaved,
    Team,
    check,
    check_shown,
    ranks_of,
)
from streamduel.interleaving.mixing import allowed_lists, most_sensitive, sensitivity_of
from streamduel.preference.arrays import Floats

LONGEST: Final = 10
"""A programme has up to 2^length variables: 1,024 take some 25 ms, a million for ever."""

Credit = Literal["inverse_rank", "rank_difference"]
"""What a click is worth for the side that has the document higher, by the ranks from 1 in both."""


@dataclass(frozen=True, eq=False)
class Mixture(Generic[Document]):
    """Lists, and how often to show each; drawing from it costs little, finding it does not.

    A service that sees the same two rankings again may keep it.

    Attributes:
        list_a: document ids of ranker a, the best first.
        list_b: those of ranker b.
        length: how many documents are shown.
        rankings: the credited ranks of the lists that keep to the order of both rankings: as many
            as the shorter ranking has documents, at most.
        probabilities: (n,) how often each is shown.
        worths: (n, ranks) what a click is worth there; above 0 it speaks for a, below 0 for b.
        sensitivity: (n,) how much an impression of each tells, from 0 to 1 bit.
    """

    list_a: Sequence[Document]
    list_b: Sequence[Document]
    length: int
    rankings: list[tuple[Document, ...]]
    probabilities: Floats
    worths: Floats
    sensitivity: Floats

    def draw(self, rng: RandomBits) -> Interleaved[Document]:
        """One of the lists, as `interleave` describes it.

        Args:
            rng: what is drawn from.
        """
        upto = list(accumulate(self.probabilities.tolist()))
        # Rounding may leave the sum a little below 1.
        number = min(bisect_right(upto, uniform(rng) * upto[-1]), len(upto) - 1)
        docs = list(self.rankings[number])
        most = np.abs(self.worths).max(initial=0.0)
        teams = [_team(worth, most, rng) for worth in self.worths[number].tolist()]
        if len(docs) < self.length:
            above = set(docs)
            rest_a, rest_b = (
                [document for document in ranking if document not in above]
                for ranking in (self.list_a, self.list_b)
            )
            docs += team_draft.interleave(rest_a, rest_b, self.length - len(docs), rng).docs
        return Interleaved(docs, teams + [None] * (len(docs) - len(teams)))


def _team(worth: float, most: float, rng: RandomBits) -> Team:
    """The side that has a document higher with the probability |worth| / most, else nobody."""
    if worth == 0 or uniform(rng) * most >= abs(worth):
        return None
    return "a" if worth > 0 else "b"


def interleave(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    length: int,
    rng: RandomBits,
    *,
    credit: Credit = "inverse_rank",
) -> Interleaved[Document]:
    """Interleave two rankings.

    A click on a document is worth the more for a side, the higher that side has it. Of all lists
    that keep to the order of both rankings, each is shown with a probability such that whoever
    clicks at random favours neither side, however far down; among the probabilities that do, those
    that make impressions most telling. `solve` has the details.

    The `teams` of a record know sides and no worths. So a document is of the team of the side that
    has it higher with a probability proportional to its worth, and nobody's otherwise: on average a
    click counts as much as it is worth, and counting clicks by team is as unbiased as the worths
    are. The noise of this draw is the price; `worth_of` has the worths themselves, for those who
    analyse impressions on their own.

    Args:
        list_a: document ids of ranker a, the best first, of any hashable kind.
        list_b: those of ranker b.
        length: how many documents to show, from 0 to 10; fewer where the lists have fewer.
        rng: 53 bits of it are drawn for the list, 53 for each document that is worth something,
            and for the ranks below the end of the shorter ranking what team draft draws.
        credit: what a click is worth, as in `solve`.

    Raises:
        InterleavingError: a ranking has a document twice, the length or the credit is not allowed,
            scipy is not installed, or there is no unbiased solution.

    >>> from random import Random
    >>> interleave(["d1", "d2", "d3"], ["d2", "d4", "d1"], 3, Random(2))
    Interleaved(docs=['d2', 'd4', 'd1'], teams=[None, 'b', 'a'])

    Source: Radlinski and Craswell, "Optimized Interleaving for Online Retrieval Evaluation",
    WSDM 2013.
    """
    return solve(list_a, list_b, length, credit=credit).draw(rng)


def solve(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    length: int,
    *,
    credit: Credit = "inverse_rank",
) -> Mixture[Document]:
    """How often to show which list.

    Allowed are the lists of which each beginning is the union of a beginning of ranking a and one
    of ranking b. A document of rank x in a and y in b is worth 1/x - 1/y (`inverse_rank`) or y - x
    (`rank_difference`); one that a ranking lacks has the rank below the end of the longer one.

    - Unbiased: at each rank the worth is 0 on average. So it is for a user who reads k documents,
      for any k, and clicks one of them at random.
    - Sensitive: under that, the average over the lists of (1 - w_t) H(w_a / (w_a + w_b)) is as
      large as can be. A user clicks rank r with a probability proportional to 1/r; w_a, w_b and w_t
      are the probabilities that the click is worth something for a, for b, or nothing; H is the
      entropy of a coin in bits.

    Credited are as many ranks as the shorter ranking has documents. Further down, one ranking may
    have run out, and no choice of lists need be unbiased; what fills the list there is nobody's.
    A solution has been found for all pairs of rankings tried, also all of up to six documents,
    though nobody has proved that there always is one.

    Args:
        list_a: document ids of ranker a, the best first, of any hashable kind.
        list_b: those of ranker b.
        length: how many documents to show, from 0 to 10; fewer where the lists have fewer.
        credit: `inverse_rank`, where the upper ranks matter most, or `rank_difference`.

    Raises:
        InterleavingError: as in `interleave`.

    >>> mixture = solve("abcd", "bdca", 4, credit="rank_difference")
    >>> for ranking, probability in zip(mixture.rankings, mixture.probabilities):
    ...     print("".join(ranking), f"{probability:.2f}")
    abcd 0.00
    abdc 0.25
    bacd 0.00
    badc 0.35
    bdac 0.40
    bdca 0.00

    Source: Radlinski and Craswell, WSDM 2013, equations 5 to 8 (constraints), 9 to 13
    (sensitivity), 14 and 15 (worths). Relied on was what public implementations cite of them.
    """
    check(length, list_a=list_a, list_b=list_b)
    if length > LONGEST:
        raise InterleavingError(
            f"the length of an optimised interleaved list must be at most {LONGEST} (found"
            f" {length}); its linear programme doubles with each rank."
        )
    ranks = min(length, len(list_a), len(list_b))
    rankings = allowed_lists(list_a, list_b, ranks)
    known = _Worths(list_a, list_b, credit)
    worths = np.array([[known.of(document) for document in each] for each in rankings])
    worths = worths.reshape(len(rankings), ranks)
    sensitivity = sensitivity_of(worths)
    probabilities = most_sensitive(worths, sensitivity)
    return Mixture(list_a, list_b, length, rankings, probabilities, worths, sensitivity)


def worth_of(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    docs: Sequence[Document],
    ranks: Sequence[int],
    *,
    credit: Credit = "inverse_rank",
) -> float:
    """What the clicks of an impression are worth: above 0 they speak for a, below 0 for b.

    Its average over many impressions is the paper's measure of by how much a is better; it has less
    noise than `teams`.

    Args:
        list_a: document ids of ranker a, the best first.
        list_b: those of ranker b.
        docs: what `interleave` made of them.
        ranks: the clicked ranks, from 0; a rank that is there twice counts twice.
        credit: as it was for `interleave`.

    Raises:
        IndexError: a rank lies outside the list.
        InterleavingError: a shown document is in neither ranking, or was shown twice, or the credit
            is not allowed.

    >>> worth_of("abcd", "bdca", "abdc", [0, 2])
    0.5
    """
    check_shown(list_a, list_b, docs)
    known = _Worths(list_a, list_b, credit)
    credited = min(len(list_a), len(list_b))
    clicked = [(rank, docs[rank]) for rank in ranks]
    return sum(known.of(document) for rank, document in clicked if rank < credited)


class _Worths(Generic[Document]):
    """What a click on each document is worth."""

    def __init__(
        self, list_a: Sequence[Document], list_b: Sequence[Document], credit: Credit
    ) -> None:
        if credit not in get_args(Credit):
            raise InterleavingError(
                f"credit must be {' or '.join(map(repr, get_args(Credit)))} (found {credit!r}"
                f"{nearest(str(credit), get_args(Credit))})."
            )
        self._in_a, self._in_b = ranks_of(list_a), ranks_of(list_b)
        self._below = max(len(list_a), len(list_b))
        self._inverse = credit == "inverse_rank"

    def of(self, document: Document) -> float:
        """Above 0 for a, below 0 for b."""
        x = self._in_a.get(document, self._below) + 1
        y = self._in_b.get(document, self._below) + 1
        return 1 / x - 1 / y if self._inverse else float(y - x)
