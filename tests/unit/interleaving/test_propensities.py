"""Propensities from clicks: by hand, and of simulated users whose propensities are known."""

from __future__ import annotations

import random
from collections import Counter
from math import sqrt
from typing import Any

import pytest

from streamduel.errors import InterleavingError
from streamduel.interleaving.credit import (
    Shown,
    estimate_propensities,
    on_ranks,
    position_debiased,
)
from streamduel.interleaving.team_draft import interleave

Impression = tuple[list[str], list[int]]


def shown(docs: str, times: int, *clicked: int) -> list[Impression]:
    """A list shown so many times, so many of them with a click on each rank."""
    return [
        (list(docs), [rank for rank, clicks in enumerate(clicked) if time < clicks])
        for time in range(times)
    ]


def test_propensities_come_from_documents_at_two_ranks() -> None:
    """Twice as many look at rank 0; x is liked by half, y by a quarter, and x is mostly on top.

    Clicks by rank are 7 and 4 of 16, as if 57 % looked at rank 1: it is 50 %.
    """
    log = shown("xy", 8, 4, 1) + shown("yx", 8, 2, 2)
    assert estimate_propensities(log, 2) == [1.0, 0.5]
    log = shown("xy", 24, 12, 3) + shown("yx", 8, 2, 2)
    assert estimate_propensities(log, 2) == [1.0, 0.5]
    assert (3 + 2) / (12 + 2) < 0.4  # what clicks by rank would say


def test_documents_are_weighted_by_their_impressions() -> None:
    """By hand: x has 1 of 2 on top and 0 of 2 below, y 1 of 2 and 2 of 2; z moves nowhere."""
    log = shown("xyz", 2, 1, 2, 1) + shown("yxz", 2, 1, 0, 2)
    # Below: (0 · 2 + 2 · 2) / 4, above: (1 · 2 + 1 · 2) / 4.
    assert estimate_propensities(log, 2) == [1.0, 1.0]


def test_propensities_are_relative_to_the_largest() -> None:
    found = estimate_propensities(shown("xy", 4, 1, 2) + shown("yx", 4, 1, 2), 2)
    assert found == [0.5, 1.0]
    credit = position_debiased(propensities=found)
    assert credit(Shown(["a", "b"]), on_ranks([0, 1])) == 1.0


def test_a_repeated_click_counts_once() -> None:
    log = shown("xy", 8, 4, 1) + shown("yx", 8, 2, 2)
    again = [(docs, ranks * 3) for docs, ranks in log]
    assert estimate_propensities(again, 2) == [1.0, 0.5]


def test_one_document_id_gives_the_click_rate_of_each_rank() -> None:
    """One id for all documents assumes equal relevance."""
    log = shown("---", 10, 8, 4, 1)
    assert estimate_propensities(log, 3) == pytest.approx([1.0, 0.5, 0.125])


def test_length_bounds_the_ranks() -> None:
    assert estimate_propensities(shown("xyz", 3, 1, 1, 1), 1) == [1.0]
    assert estimate_propensities([], 1) == [1.0]


@pytest.mark.parametrize(
    ("log", "lacking"),
    [
        ([], 0),
        (shown("xy", 5, 5, 5), 0),  # no document at both ranks
        (shown("xy", 5, 0, 5) + shown("yx", 5, 0, 5), 0),
        (shown("xy", 5, 5, 0) + shown("yx", 5, 5, 0), 1),
    ],
)
def test_ranks_without_common_documents_are_an_error(log: list[Impression], lacking: int) -> None:
    with pytest.raises(InterleavingError) as refused:
        estimate_propensities(log, 2)
    assert str(refused.value) == (
        "rank 1 cannot be compared with rank 0: of the documents shown at both, none was clicked "
        f"at rank {lacking}; give more impressions, or a length of 1."
    )


@pytest.mark.parametrize("rank", [2, -1])
def test_a_rank_outside_the_list_is_an_error(rank: int) -> None:
    with pytest.raises(IndexError):
        estimate_propensities([(["x", "y"], [rank])], 2)


LOOKS = [1.0, 0.6, 0.4, 0.25]


def test_the_propensities_of_simulated_users_are_found() -> None:
    """Team draft of two rankings for each of 30 queries, and users of the position-based model.

    The band follows from the truth. At a rank where a document was shown n times, its clicks are
    binomial with q = looks · likes, so both sums of a step are known with their variances, and to
    first order their relative ones add up to that of the ratio. The steps share clicks: the errors
    down to a rank are at most the sum of theirs. Five standard errors; the seed is fixed.
    """
    rng = random.Random(5)
    log: list[tuple[list[tuple[int, int]], list[int]]] = []
    likes: dict[tuple[int, int], float] = {}
    for query in range(30):
        quality = sorted((rng.uniform(0.1, 0.9) for _ in range(6)), reverse=True)
        likes |= {(query, number): liked for number, liked in enumerate(quality)}
        ours, theirs = (
            sorted(range(6), key=lambda number: rng.gauss(number, 2.0)) for _ in range(2)
        )
        for _ in range(1500):
            docs = [(query, number) for number in interleave(ours, theirs, 4, rng).docs]
            ranks = [at for at, doc in enumerate(docs) if rng.random() < LOOKS[at] * likes[doc]]
            log.append((docs, ranks))
    error = 0.0
    times = Counter((doc, rank) for docs, _ in log for rank, doc in enumerate(docs))
    for rank, found in enumerate(estimate_propensities(log, 4)):
        if rank:
            error += step_error(times, likes, rank)
        assert found == pytest.approx(LOOKS[rank], rel=5 * error)
    assert 5 * error < 0.4
    by_rank = [sum(rank in ranks for _, ranks in log) for rank in range(4)]
    assert by_rank[3] / by_rank[0] < 0.75 * LOOKS[3]  # the better documents are on top


def step_error(times: Counter[Any], likes: dict[tuple[int, int], float], rank: int) -> float:
    """The relative standard error of the propensity of a rank by that of the rank above."""
    relative = 0.0
    for here, there in ((rank, rank - 1), (rank - 1, rank)):
        mean = variance = 0.0
        for doc, liked in likes.items():
            n, other, q = times[doc, here], times[doc, there], LOOKS[here] * liked
            if n and other:
                weight = other / (n + other)
                mean += weight * n * q
                variance += weight**2 * n * q * (1 - q)
        relative += variance / mean**2
    return sqrt(relative)
