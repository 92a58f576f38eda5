"""Sure results of pairs, by Hoeffding's inequality, and when they are possible."""

from __future__ import annotations

import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers


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
