"""Why a policy compares a pair, in a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from streamduel.policies.base.parameter import Real
from streamduel.preference.arrays import Floats
from streamduel.preference.bounds import UpperBounds
from streamduel.preference.counts import WinCounts
from streamduel.preference.logarithm import ln
from streamduel.preference.verdict import percent


def by_counts(
    what: str, wins: Floats, candidates: int, pair: tuple[int, int], arms: Sequence[str]
) -> str:
    """What is counted: for an algorithm without bounds or samples of its own.

    Args:
        what: the algorithm in some words.
        wins: (K, K), as in `WinCounts`.
        candidates: how many arms are not ruled out.
        pair: two different arms.
        arms: the names of all arms.

    >>> import numpy as np
    >>> by_counts("round robin", np.array([[0.0, 6.0], [4.0, 0.0]]), 2, (0, 1), ["x", "y"])
    'round robin; 2 of 2 rankers are not ruled out, and x has won 60.0 % of its 10 duels with y.'
    """
    first, second = pair
    won, lost = wins.item(first, second), wins.item(second, first)
    met = (
        f"{arms[first]} has won {percent(won / (won + lost))} of its {won + lost:,.0f} duels with "
        f"{arms[second]}"
        if won + lost
        else f"{arms[first]} has not met {arms[second]} yet"
    )
    return f"{what}; {candidates} of {len(arms)} rankers are not ruled out, and {met}."


class ByUpperBounds:
    """What RUCB and its relatives say: a candidate against its strongest challenger.

    Attributes:
        alpha: the scale of the bounds is α ln t.
    """

    alpha: Real
    _bounds: UpperBounds
    _counts: WinCounts

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: by upper bounds."""
        bounds, scale, pair = self._bounds, self._scale, (first, second)
        candidates = bounds.possible_winners(scale).tolist()
        champion, rival = max(
            (pair, pair[::-1]),
            key=lambda each: (each[0] in candidates, each[1] in bounds.challengers(each[0], scale)),
        )
        upper = min(1.0, bounds.against(champion, scale).item(rival))
        name = arms[champion]
        if candidates == [champion]:
            chosen = f"{name} is the only ranker that may beat all others"
        elif champion in candidates:
            chosen = f"{name} is one of {len(candidates)} rankers that may beat all others"
        elif candidates:  # a sample has favoured it, or the duels since the decision ruled it out
            chosen = f"{name} was chosen, though by the bounds it cannot beat all others"
        else:
            chosen = (
                f"By the upper bounds, no ranker may beat all others, so {name} was chosen from "
                f"all {len(arms)}"
            )
        return (
            f"{chosen}, and {arms[rival]} is its strongest challenger: by the upper bound, it may "
            f"win {percent(upper)} of their duels."
        )

    def candidates(self) -> int:
        """How many arms may be the Condorcet winner; 0 if none can be, as in a cycle."""
        return len(self._bounds.possible_winners(self._scale))

    @property
    def _scale(self) -> float:
        return self.alpha * ln(self._counts.duels + 1)


def sampled_chance(wins: Floats, arm: int, rival: int) -> str:
    """The chance that an arm wins against a rival: mean and deviation of what is sampled.

    It is the Beta distribution of the wins and losses, each plus one.

    >>> import numpy as np
    >>> sampled_chance(np.array([[0.0, 6.0], [4.0, 0.0]]), 0, 1)
    '58.3 % ± 13.7 %'
    """
    won, lost = wins.item(arm, rival) + 1, wins.item(rival, arm) + 1
    mean, n = won / (won + lost), won + lost
    return f"{percent(mean)} ± {percent(sqrt(mean * (1 - mean) / (n + 1)))}"
