"""What the impressions so far come to, by the truth that only the demo knows."""

from __future__ import annotations

from collections import Counter, deque
from typing import Final

import numpy as np

from streamduel.client import Draw
from streamduel.demo.world import World
from streamduel.preference.arrays import Floats
from streamduel.preference.regret import regrets

RECENT: Final = 150
"""Impressions by which it is judged who is shown at present: three seconds' worth, so that a ranker
that is dropped vanishes in front of the viewer's eyes, and few enough hops of the bars."""

MOST_POINTS: Final = 800
"""Points of the regret curve, twice as many as a wide terminal has columns."""


class Ledger:
    """Counts impressions, who was shown in them, and what they have cost.

    Args:
        world: the rankers, and their true preferences.

    Attributes:
        impressions: how many.
        shown: (K,) in how many of them each ranker took part.
        bad: in how many a ranker of the worse half did.
        regret: what all of them have cost: half of what both rankers lose against the best one.
        curve: regret over impressions, thinned out as it grows.

    >>> from streamduel.demo.world import make_world
    >>> ledger = Ledger(make_world(2, seed=0))
    >>> ledger.count(Draw("bm25", "dense-v1"))
    >>> ledger.shown, ledger.bad, round(ledger.regret, 3), round(ledger.uniform_regret(1), 3)
    ([1, 1], 1, 0.072, 0.072)
    """

    def __init__(self, world: World) -> None:
        self._index = {arm: place for place, arm in enumerate(world.arms)}
        self._costs = regrets(world.preferences, "condorcet")
        self._worse = set(world.worse_half)
        self._recent: deque[tuple[int, int]] = deque(maxlen=RECENT)
        self._stride = 1
        self.impressions = self.bad = 0
        self.shown = [0] * len(world.arms)
        self.regret = 0.0
        self.curve: list[tuple[int, float]] = [(0, 0.0)]

    def count(self, draw: Draw) -> None:
        """One more impression."""
        pair = self._index[draw.a], self._index[draw.b]
        for arm in set(pair):
            self.shown[arm] += 1
        self.impressions += 1
        self.bad += not self._worse.isdisjoint(pair)
        self.regret += float(self._costs[pair])
        self._recent.append(pair)
        if self.impressions % self._stride == 0:
            self._draw_on()

    def _draw_on(self) -> None:
        """One more point; if there are too many, every other one goes."""
        self.curve.append((self.impressions, self.regret))
        if len(self.curve) > MOST_POINTS:
            self.curve = self.curve[::2]
            self._stride *= 2

    def recent_shares(self) -> list[float]:
        """(K,) each ranker's share of the recent lists: half of one it shared, all of one alone."""
        places = Counter(arm for pair in self._recent for arm in pair)
        total = max(1, 2 * len(self._recent))
        return [places[arm] / total for arm in range(len(self.shown))]

    def uniform_regret(self, impressions: int) -> float:
        """What so many impressions would have cost if all pairs had been shown equally often."""
        return impressions * float(self._of_pairs(self._costs).mean())

    def uniform_bad(self, impressions: int) -> float:
        """In how many of them a ranker of the worse half would have taken part."""
        worse = np.isin(np.arange(len(self.shown)), list(self._worse))
        return impressions * float(self._of_pairs(np.logical_or.outer(worse, worse)).mean())

    @staticmethod
    def _of_pairs(values: Floats | np.typing.NDArray[np.bool_]) -> Floats:
        """The values of each pair of two rankers, once."""
        return np.asarray(values[np.triu_indices(len(values), k=1)], dtype=np.float64)
