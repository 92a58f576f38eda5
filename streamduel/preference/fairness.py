"""Whether two sides that should come out even do: a check that may be looked at all the time."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from streamduel.preference.evidence import log_evidence_of


def unfairness(counts: Iterable[tuple[float, float]]) -> float:
    """How sure it is that a fair coin is not behind one of these counts, at any time.

    Instead of a coin, anything will do that is split in two parts of one whole, and as even in the
    long run: half a tie each, say, or a quarter and three quarters.

    A sample-ratio mismatch, for those who look at a dashboard rather than once at the end: over the
    whole life of what is counted, the chance that fair coins ever reach x is at most 1 - x.

    Args:
        counts: of some coins, how much fell to either side so far.

    Returns:
        From 0, nothing speaks against fairness, towards 1.

    >>> round(unfairness([(520, 480)]), 3), round(unfairness([(600, 400), (500, 500)]), 6)
    (0.0, 1.0)

    Source: as for `streamduel.preference.evidence`; both directions, and all coins, at once.
    """
    both = np.array([pair for count in counts for pair in (count, count[::-1])], dtype=np.float64)
    if not len(both):
        return 0.0
    most = float(log_evidence_of(both[:, 0], both[:, 1]).max())
    # M_n already stands for both directions, so that the error is shared by the coins alone.
    return max(0.0, 1 - len(both) / 2 * math.exp(-most))
