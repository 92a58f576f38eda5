"""The size of an A/B test that would give the same answer as the duels of a plan."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

POWER: Final = 0.8
"""The usual power of an A/B test: it misses a difference of this size one time in five."""


class ABTest(NamedTuple):
    """A test of all arms against the best one, each on its own part of the users.

    Attributes:
        impressions: of all arms together.
        best: the share of impressions of the best arm with a click.
        other: that of each other arm.
    """

    impressions: int
    best: float
    other: float


def ab_test(
    n_arms: int, difference: float, click_share: float, confidence: float, shared: float = 0.0
) -> ABTest:
    """The fixed number of impressions of an A/B test with the power `POWER`.

    Two-sided tests of two proportions, of the best arm against each other one, with the Bonferroni
    correction for K - 1 tests, and read once, at the end.

    The link to duels is an assumption. A share S of the interleaved impressions is clicked, and in
    a share 1/2 + D of these the user prefers the best arm. If only one arm's list is shown, a user
    who prefers it clicks; a user who prefers the other one clicks with the probability `shared`.
    With 0, every preference is a click that the other list loses: the A/B test cannot do better.

    Args:
        n_arms: K.
        difference: D.
        click_share: S.
        confidence: 1 less the probability of a false difference, in all tests together.
        shared: from 0 to below 1.

    >>> test = ab_test(2, difference=0.05, click_share=0.3, confidence=0.95)
    >>> test.impressions, round(test.best, 3), round(test.other, 3)
    (4446, 0.165, 0.135)

    Source: J. L. Fleiss, B. Levin and M. C. Paik, "Statistical Methods for Rates and Proportions",
    3rd edition, 2003, equation (4.14), without continuity correction.
    """
    ahead, behind = 0.5 + difference, 0.5 - difference
    best, other = click_share * (ahead + shared * behind), click_share * (behind + shared * ahead)
    mean = (best + other) / 2
    wrong = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * (n_arms - 1)))
    found = NormalDist().inv_cdf(POWER)
    spread = math.sqrt(best * (1 - best) + other * (1 - other))
    root = (wrong * math.sqrt(2 * mean * (1 - mean)) + found * spread) / (best - other)
    return ABTest(n_arms * max(1, math.ceil(root * root)), best, other)
