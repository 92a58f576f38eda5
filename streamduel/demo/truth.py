"""Which ranker wins how often, worked out instead of measured: what the demo knows and hides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from streamduel.interleaving.team_draft import interleave
from streamduel.preference.arrays import Floats
from streamduel.simulation.click_models import ClickModel

_SIDES: Final = {"a": 1, "b": -1, None: 0}


class _Coins(NamedTuple):
    """Coins of team draft that fall as told, the lowest bit first."""

    falls: list[int]

    @classmethod
    def of(cls, pattern: int, rounds: int) -> _Coins:
        return cls([pattern >> coin & 1 for coin in range(rounds)][::-1])

    def getrandbits(self, k: int, /) -> int:
        assert k == 1
        return self.falls.pop()


def preferences(
    rankings: Sequence[Sequence[Sequence[int]]],
    grades: Sequence[Sequence[int]],
    clicks: ClickModel,
    length: int,
) -> Floats:
    """How often each ranker wins an interleaved list against each other one, a tie being half.

    All queries are equally likely. Every list that team draft can make of two rankings is as likely
    as any other: one for each way its coins can fall. Of each, the chances of the difference in
    clicks follow from the click model, rank by rank.

    Args:
        rankings: (K, queries, documents), the documents in each ranker's order.
        grades: (queries, documents), their relevance.
        clicks: how users click.
        length: how many documents a list shows; even, and both rankings have as many.

    Returns:
        (K, K), with 1/2 on the diagonal.

    >>> from streamduel.simulation.click_models import click_model
    >>> preferences([[[0, 1, 2, 3]], [[3, 2, 1, 0]]], [[4, 1, 0, 0]], click_model("perfect"), 2)
    array([[0.5, 1. ],
           [0. , 0.5]])
    """
    n_arms, rounds = len(rankings), length // 2
    pairs = list(combinations(range(n_arms), 2))
    shown, sides = [], []
    for first, second in pairs:
        for query, judged in enumerate(grades):
            for pattern in range(1 << rounds):
                docs, teams = interleave(
                    rankings[first][query], rankings[second][query], length,
                    _Coins.of(pattern, rounds),
                )  # fmt: skip
                shown.append([judged[doc] for doc in docs])
                sides.append([_SIDES[team] for team in teams])
    outcomes = _outcomes(np.array(shown), np.array(sides), clicks)
    p = np.full((n_arms, n_arms), 0.5)
    for (first, second), wins in zip(pairs, outcomes.reshape(len(pairs), -1), strict=True):
        p[first, second] = wins.mean()
        p[second, first] = 1 - p[first, second]
    return p


def _outcomes(shown: Floats, sides: Floats, clicks: ClickModel) -> Floats:
    """(lists,) P(side a has more clicks) + P(as many) / 2, of lists of grades and of teams."""
    lists, length = shown.shape
    click = np.array(clicks.click)[shown]
    stop = np.array(clicks.stop)[shown]
    # [list, difference + length]: the chance to be there, reading on, or having stopped.
    reading = np.zeros((lists, 2 * length + 1))
    reading[:, length] = 1.0
    stopped = np.zeros_like(reading)
    for rank in range(length):
        clicked = np.zeros_like(reading)
        for side in (-1, 0, 1):
            rows = sides[:, rank] == side
            clicked[rows] = np.roll(reading[rows], side, axis=1)
        clicked *= click[:, rank, None]
        stopped += clicked * stop[:, rank, None]
        reading = reading * (1 - click[:, rank, None]) + clicked * (1 - stop[:, rank, None])
    chances = reading + stopped
    return np.asarray(chances[:, length + 1 :].sum(axis=1) + chances[:, length] / 2)
