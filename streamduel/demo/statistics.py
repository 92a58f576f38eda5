"""Statistics of the demo's impressions: who was shown, and the true regret."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

import numpy as np

from streamduel.client import Draw
from streamduel.demo.rankers import Rankers
from streamduel.preference.arrays import Floats
from streamduel.preference.regret import regrets

RECENT: Final = 150
"""Impressions of the shares on the screen: those of three seconds, so that the bar of a dropped
ranker visibly disappears, but does not flicker."""

MAX_POINTS: Final = 800
"""Points of the regret curve: twice the columns of a wide terminal."""


class Statistics:
    """Counts impressions and their rankers, and sums up their regret.

    Attributes:
        shown: (K,) the impressions of each ranker.
        bad: impressions with a ranker of the worse half.
        regret: the Condorcet regret of all impressions.
        curve: regret over impressions, thinned out as it grows.

    >>> from streamduel.demo.rankers import make_rankers
    >>> statistics = Statistics(make_rankers(2, seed=0))
    >>> statistics.count(Draw("bm25", "dense-v1"))
    >>> statistics.shown, statistics.bad, round(statistics.regret, 3)
    ([1, 1], 1, 0.072)
    >>> round(statistics.uniform_regret(1), 3)
    0.072
    """

    def __init__(self, rankers: Rankers) -> None:
        self._index = {arm: place for place, arm in enumerate(rankers.arms)}
        self._costs = regrets(rankers.preferences, "condorcet")
        self._worse = set(rankers.worse_half)
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)
        self._stride = 1
        self.impressions = self.bad = 0
        self.shown = [0] * len(rankers.arms)
        self.regret = 0.0
        self.curve: list[tuple[int, float]] = [(0, 0.0)]

    def count(self, draw: Draw) -> None:
        """Add an impression."""
        pair = self._index[draw.a], self._index[draw.b]
        for arm in set(pair):
            self.shown[arm] += 1
        self.impressions += 1
        self.bad += not self._worse.isdisjoint(pair)
        self.regret += float(self._costs[pair])
        self._recent.append(pair)
        if self.impressions % self._stride == 0:
            self._add_point()

    def _add_point(self) -> None:
        """Add a point to the curve; if there are too many, drop every other one."""
        self.curve.append((self.impressions, self.regret))
        if len(self.curve) > MAX_POINTS:
            self.curve = self.curve[::2]
            self._stride *= 2

    def recent_shares(self) -> list[float]:
        """(K,) each ranker's share of the recent lists: half of an interleaved one."""
        places = Counter(arm for pair in self._recent for arm in pair)
        total = max(1, 2 * len(self._recent))
        return [places[arm] / total for arm in range(len(self.shown))]

    def uniform_regret(self, impressions: int) -> float:
        """The expected regret of this many impressions if all pairs were shown equally often."""
        return impressions * float(self._of_pairs(self._costs).mean())

    def uniform_bad(self, impressions: int) -> float:
        """The expected number of these impressions that show a ranker of the worse half."""
        worse = np.isin(np.arange(len(self.shown)), list(self._worse))
        return impressions * float(self._of_pairs(np.logical_or.outer(worse, worse)).mean())

    @staticmethod
    def _of_pairs(values: Floats | np.typing.NDArray[np.bool_]) -> Floats:
        """The values of all pairs of two rankers, each once."""
        return np.asarray(values[np.triu_indices(len(values), k=1)], dtype=np.float64)
