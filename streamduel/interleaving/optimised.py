"""Optimised interleaving: a linear programme decides how often to show which list.

Needs scipy, which is imported when the first two rankings differ.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import accumulate
from math import log2
from typing import Final, Generic, Literal, get_args

from streamduel.errors import InterleavingError, nearest
from streamduel.interleaving import team_draft
from streamduel.interleaving.base import (
    Document,
    Interleaved,
    RandomBits,
    Team,
    at_rank,
    check,
    check_shown,
    ranks_of,
    uniform,
)

MAX_LENGTH: Final = 10
"""A programme has up to 2^length variables: 1,024 take some 25 ms, a million take hours."""

_PRECISION: Final = 1e-10  # the finest that the solver offers

Credit = Literal["inverse_rank", "rank_difference"]
"""The worth of a click for the side that has the document higher, by the ranks from 1 in both."""


@dataclass(frozen=True, eq=False)
class Mixture(Generic[Document]):
    """Lists and the probability of each. Drawing is cheap, solving is not.

    A service that often gets the same two rankings may keep their mixture.

    Attributes:
        list_a: document ids of ranker a, the best first.
        list_b: document ids of ranker b.
        length: documents to show.
        rankings: the credited ranks of the n allowed lists: at most as many ranks as the shorter
            ranking has documents.
        probabilities: (n,) how often each list is shown.
        worths: (n, ranks) the worth of a click: above 0 for side a, below 0 for side b.
        sensitivity: (n,) the information in an impression of each list, from 0 to 1 bit.
    """

    list_a: Sequence[Document]
    list_b: Sequence[Document]
    length: int
    rankings: list[tuple[Document, ...]]
    probabilities: list[float]
    worths: list[list[float]]
    sensitivity: list[float]

    @cached_property
    def _upto(self) -> list[float]:
        return list(accumulate(self.probabilities))

    @cached_property
    def _largest(self) -> float:
        return _largest(self.worths)

    def draw(self, rng: RandomBits) -> Interleaved[Document]:
        """Draw one of the lists; see `interleave`."""
        upto = self._upto
        # Rounding may leave the sum a little below 1.
        number = min(bisect_right(upto, uniform(rng) * upto[-1]), len(upto) - 1)
        docs = list(self.rankings[number])
        teams = [_team(worth, self._largest, rng) for worth in self.worths[number]]
        if len(docs) < self.length:
            above = set(docs)
            rest_a, rest_b = (
                [document for document in ranking if document not in above]
                for ranking in (self.list_a, self.list_b)
            )
            docs += team_draft.interleave(rest_a, rest_b, self.length - len(docs), rng).docs
        return Interleaved(docs, teams + [None] * (len(docs) - len(teams)))


def _team(worth: float, largest: float, rng: RandomBits) -> Team:
    """The side that has the document higher with probability |worth| / largest, else None."""
    if worth == 0 or uniform(rng) * largest >= abs(worth):
        return None
    return "a" if worth > 0 else "b"


def _largest(worths: list[list[float]]) -> float:
    return max((abs(worth) for row in worths for worth in row), default=0.0)


def interleave(
    list_a: Sequence[Document],
    list_b: Sequence[Document],
    length: int,
    rng: RandomBits,
    *,
    credit: Credit = "inverse_rank",
) -> Interleaved[Document]:
    """Interleave two rankings.

    A click is worth more for a side, the higher that side has the document. Each list that keeps to
    the order of both rankings is shown with a probability such that clicks at random favour neither
    side, at any rank; among these probabilities, those with the most informative impressions are
    chosen. See `solve`.

    A document joins the team of the side that has it higher with a probability proportional to its
    worth, and no team otherwise: the mean credit of a click is its worth. `worth_of` gives the
    worths themselves, to analyse impressions without the noise of this draw.

    Args:
        list_a: document ids of ranker a, the best first; any hashable type.
        list_b: document ids of ranker b.
        length: documents to show, from 0 to 10; fewer where the rankings have fewer.
        rng: 53 bits are drawn for the list, 53 for each document of a worth other than 0, and the
            bits of team draft for the ranks below the end of the shorter ranking.
        credit: the worth of a click, as in `solve`.

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
    """Compute how often to show which list.

    The arguments and errors are those of `interleave`.

    Allowed are the lists of which each prefix is the union of a prefix of ranking a and one of
    ranking b. A document of rank x in a and y in b is worth 1/x - 1/y (`inverse_rank`: upper ranks
    matter most) or y - x (`rank_difference`); one that a ranking lacks has the rank below the end
    of the longer one.

    - Unbiased: at each rank the mean worth is 0; then it is 0 for a user who reads k documents and
      clicks one of them at random, for any k.
    - Sensitive: subject to that, the mean over the lists of (1 - w_t) H(w_a / (w_a + w_b)) is
      maximal. A user clicks rank r with a probability proportional to 1/r; w_a, w_b and w_t are the
      probabilities that the click is worth something for a, for b, or nothing; H is the entropy of
      a coin in bits.

    As many ranks are credited as the shorter ranking has documents. Further down, a ranking may be
    exhausted, and an unbiased choice of lists need not exist; the documents there have no team.
    With `inverse_rank`, a solution was found for all pairs of rankings that were tried, among them
    all of up to six documents; there is no proof that one always exists. With `rank_difference`, a
    long and a short ranking may have none, such as those of 14 documents and of its documents 2, 4,
    5 and 3.

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
    (sensitivity), 14 and 15 (worths), as cited by public implementations.
    """
    check(length, list_a=list_a, list_b=list_b)
    if length > MAX_LENGTH:
        raise InterleavingError(
            f"the length of an optimised interleaved list must be at most {MAX_LENGTH} (found"
            f" {length}); its linear programme doubles with each rank."
        )
    if find_spec("scipy") is None:  # not an import, which takes half a second
        raise InterleavingError(
            "optimised interleaving needs scipy; install it with 'pip install scipy'."
        )
    ranks = min(length, len(list_a), len(list_b))
    rankings = allowed_lists(list_a, list_b, ranks)
    worth = _worths(list_a, list_b, credit)
    worths = [[worth[document] for document in ranking] for ranking in rankings]
    sensitivity = [_sensitivity(row) for row in worths]
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
    """The worth of the clicks of an impression: above 0 for side a, below 0 for side b.

    Its mean over many impressions is the paper's measure of how much better a is; it has less noise
    than `teams`. `credit` is that of `interleave`.

    >>> worth_of("abcd", "bdca", "abdc", [0, 2])
    0.5
    """
    check_shown(list_a, list_b, docs)
    worth = _worths(list_a, list_b, credit)
    credited = min(len(list_a), len(list_b))
    clicked = [(rank, at_rank(docs, rank)) for rank in ranks]
    return sum(worth[document] for rank, document in clicked if rank < credited)


def _worths(
    list_a: Sequence[Document], list_b: Sequence[Document], credit: Credit
) -> dict[Document, float]:
    """The worth of a click on each document: above 0 for side a, below 0 for side b."""
    if credit not in get_args(Credit):
        raise InterleavingError(
            f"credit must be {' or '.join(map(repr, get_args(Credit)))} (found {credit!r}"
            f"{nearest(str(credit), get_args(Credit))})."
        )
    in_a, in_b = ranks_of(list_a), ranks_of(list_b)
    lowest = max(len(list_a), len(list_b))
    worths = {}
    for document in {**in_a, **in_b}:
        x, y = in_a.get(document, lowest) + 1, in_b.get(document, lowest) + 1
        worths[document] = 1 / x - 1 / y if credit == "inverse_rank" else float(y - x)
    return worths


def allowed_lists(
    list_a: Sequence[Document], list_b: Sequence[Document], ranks: int
) -> list[tuple[Document, ...]]:
    """The lists of this length of which each prefix is the union of a prefix of a and one of b.

    Each list once, 2^ranks at most; neither ranking may be shorter than `ranks`.

    >>> ["".join(each) for each in allowed_lists("abc", "bca", 3)]
    ['abc', 'bac', 'bca']
    """
    prefixes: dict[tuple[Document, ...], None] = {(): None}
    for _ in range(ranks):
        longer: dict[tuple[Document, ...], None] = {}
        for prefix in prefixes:
            for ranking in (list_a, list_b):
                top = next(document for document in ranking if document not in prefix)
                longer[(*prefix, top)] = None
        prefixes = longer
    return list(prefixes)


def _sensitivity(worths: Sequence[float]) -> float:
    """The information of a click on a list about which ranker is better, from 0 to 1 bit."""
    wins_a = wins_b = total = 0.0
    for rank, worth in enumerate(worths, start=1):
        attention = 1 / rank
        total += attention
        if worth > 0:
            wins_a += attention
        elif worth < 0:
            wins_b += attention
    if not wins_a or not wins_b:
        return 0.0
    share = wins_a / (wins_a + wins_b)
    entropy = -(share * log2(share) + (1 - share) * log2(1 - share))
    return (wins_a + wins_b) / total * entropy


def most_sensitive(worths: list[list[float]], sensitivity: list[float]) -> list[float]:
    """The most sensitive unbiased probabilities of n lists; lists never shown have exactly 0.

    `worths` is (n, ranks), the worth of a click; `sensitivity` is (n,). InterleavingError: none.
    """
    n = len(worths)
    if n == 1:  # the rankings agree
        return [1.0]
    from scipy.optimize import linprog  # noqa: PLC0415 - an optional dependency

    scale = _largest(worths) or 1.0  # the solver's precision is absolute
    solution = linprog(
        [-each for each in sensitivity],
        A_eq=[
            *([worth / scale for worth in column] for column in zip(*worths, strict=True)),
            [1.0] * n,
        ],
        b_eq=[0.0] * len(worths[0]) + [1.0],
        bounds=(0, None),
        method="highs",
        options={
            "primal_feasibility_tolerance": _PRECISION,
            "dual_feasibility_tolerance": _PRECISION,
        },
    )
    if solution.status != 0 or solution.x is None:
        raise InterleavingError(
            f"these rankings have no unbiased interleaving (found: {solution.message}); use team"
            " draft."
        )
    shares = [share if share > _PRECISION else 0.0 for share in solution.x.tolist()]
    total = sum(shares)
    return [share / total for share in shares]
