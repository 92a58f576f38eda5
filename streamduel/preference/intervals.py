"""Confidence intervals of preferences, and sure results, by Hoeffding and by Chernoff."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.divergence import bernoulli_each

_HALVINGS: Final = 40  # of at most 1: an interval is too wide by 1e-12 at most


def hoeffding(wins: Floats, plays: Floats, scale: Floats | float) -> tuple[Floats, Floats]:
    """The means q with 2 n (p - q)² ≤ scale, p = wins / plays the observed mean, n = plays.

    If the n duels, with n fixed beforehand, are independent, the true mean is below the lower end
    with a probability of at most exp(-scale), and above the upper end with at most the same. The
    half-width is sqrt(scale / (2 n)): the bonus sqrt(s / n) of `UpperBounds` is that of
    scale = 2 s. `kl_interval` of the same scale lies within.

    Args:
        wins: of any shape: duels won, a tie being half a win.
        plays: of the same shape: duels played.
        scale: the largest evidence against a mean, in nats; a negative one is the same as 0.

    Returns:
        The lower and the upper ends, cut to [0, 1]; of a pair without duels 0 and 1.

    >>> lower, upper = hoeffding(np.array([6.0, 0.0]), np.array([8.0, 0.0]), scale=0.25)
    >>> lower.tolist(), upper.tolist()
    ([0.625, 0.0], [0.875, 1.0])

    Source: W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal
    of the American Statistical Association 58, 1963, Theorem 1.
    """
    mean, met = _means(wins, plays)
    width = np.sqrt(np.maximum(scale, 0.0) / (2 * np.where(met, plays, 1.0)))
    lower = np.where(met, np.maximum(mean - width, 0.0), 0.0)
    upper = np.where(met, np.minimum(mean + width, 1.0), 1.0)
    return lower, upper


def kl_interval(wins: Floats, plays: Floats, scale: Floats | float) -> tuple[Floats, Floats]:
    """The means q with n d(p, q) ≤ scale, p = wins / plays the observed mean, n = plays.

    d is the divergence of Bernoulli distributions, with d(1, q) = ln(1 / q) and
    d(0, q) = ln(1 / (1 - q)): an arm that won all of n duels has the lower end exp(-scale / n), and
    the upper end 1. The guarantee is that of `hoeffding`, with a smaller interval: much
    smaller near 0 and 1, hardly near 1/2.

    The ends are found by halving, rounded outwards, and have the same bits on every machine.

    Args:
        wins: of any shape: duels won, a tie being half a win.
        plays: of the same shape: duels played.
        scale: the largest evidence against a mean, in nats; a negative one is the same as 0.

    Returns:
        The lower and the upper ends; of a pair without duels 0 and 1.

    >>> lower, upper = kl_interval(np.array([6.0, 8.0, 0.0]), np.array([8.0, 8.0, 0.0]), 0.25)
    >>> lower.round(6).tolist(), upper.round(6).tolist()
    ([0.632954, 0.969233, 0.0], [0.846618, 1.0, 1.0])

    Sources: H. Chernoff, "A measure of asymptotic efficiency for tests of a hypothesis based on
    the sum of observations", Annals of Mathematical Statistics 23, 1952; Zoghi, Karnin, Whiteson
    and de Rijke, "Copeland Dueling Bandits", NIPS 2015, Algorithm 4, which takes these intervals.
    """
    mean, met = _means(wins, plays)
    trials = np.where(met, plays, 1.0)
    lower, upper = hoeffding(wins, plays, scale)
    return (
        np.where(met, _between(mean, lower, trials, scale), 0.0),
        np.where(met, _between(mean, upper, trials, scale), 1.0),
    )


def _means(wins: Floats, plays: Floats) -> tuple[Floats, Booleans]:
    """The observed means, 1/2 for 0/0, and which pairs have duels."""
    met = plays > 0
    mean = np.full(np.shape(met), 0.5)
    np.divide(wins, plays, out=mean, where=met)
    return mean, met


def _between(mean: Floats, end: Floats, trials: Floats, scale: Floats | float) -> Floats:
    """The mean between the observed one and an end of Hoeffding's interval that is the KL end.

    Starting there saves halvings; and close to the observed mean, where the divergence is mostly
    rounding, Hoeffding's formula still holds.
    """
    inside, outside = mean, end
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        reached = trials * bernoulli_each(mean, middle) <= scale
        inside = np.where(reached, middle, inside)
        outside = np.where(reached, outside, middle)
    return outside


def surely_beats(wins: Floats, width: float) -> Booleans:
    """[i, j]: whether p̂_ij exceeds 1/2 by more than the radius sqrt(width / 2 n).

    p̂ - 1/2 = (w_ij - w_ji) / 2 n, so this is (w_ij - w_ji)² > 2 n width: without a division, and
    with no special case for pairs without duels.

    Args:
        wins: (K, K).
        width: ln(2/δ) for an interval that holds with probability 1 - δ.

    >>> surely_beats(np.array([[0.0, 5.0], [1.0, 0.0]]), width=1.3).tolist()
    [[False, True], [False, False]]
    """
    lead = wins - wins.T
    return (lead > 0) & (lead * lead > 2.0 * (wins + wins.T) * width)


def is_sure(wins: float, losses: float, width: float) -> bool:
    """Whether one of two arms surely beats the other; `surely_beats` for a single pair."""
    lead = wins - losses
    return lead * lead > 2.0 * (wins + losses) * width


def duels_until_sure(wins: Floats, width: float) -> Integers:
    """The smallest number of duels after which an arm of each pair may surely beat the other.

    After k duels more, all won by the arm that leads by g of n, the lead is sure when
    (g + k)² > 2 (n + k) width, which is when k exceeds the larger root of a quadratic equation.

    Args:
        wins: (K, K).
        width: as for `surely_beats`.

    Returns:
        (K, K), from 1; for pairs that are not yet sure. May be 1 too few, never too many.

    >>> duels_until_sure(np.array([[0.0, 5.0], [1.0, 0.0]]), width=2.0).item(0, 1)
    2
    """
    played, lead = wins + wins.T, np.abs(wins - wins.T)
    root = np.sqrt(np.maximum(width * (width + 2.0 * (played - lead)), 0.0))
    # Rounding is far below a trillionth of the terms.
    fewest = np.ceil((width - lead) + root - 1e-12 * (width + lead + root))
    return np.maximum(fewest, 1.0).astype(np.int64)
