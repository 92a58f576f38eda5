"""The Kullback-Leibler divergence of two Bernoulli distributions, exact on every machine."""

from __future__ import annotations

from math import inf

import numpy as np

from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.counts import Floats
from streamduel.preference.logarithm import ln


def bernoulli(p: float, q: float) -> float:
    """d(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)), in nats.

    How much evidence, per duel won with frequency p, speaks against a true probability q: after n
    duels, "it is q" has lost about n d(p, q) nats. 0 ln 0 is 0, so d(1, q) = ln(1 / q) and
    d(0, q) = ln(1 / (1 - q)); it is infinite where p has a chance that q excludes.

    Args:
        p: from 0 to 1.
        q: from 0 to 1.

    >>> bernoulli(0.75, 0.5), bernoulli(1, 0.5), bernoulli(0.5, 1)
    (0.13081203594113697, 0.6931471805599453, inf)

    Source: S. Kullback and R. A. Leibler, "On Information and Sufficiency", Annals of Mathematical
    Statistics 22(1), 1951.
    """
    if (q <= 0 and p > 0) or (q >= 1 and p < 1):
        return inf
    won = p * ln(p / q) if p > 0 else 0.0
    lost = (1 - p) * ln((1 - p) / (1 - q)) if p < 1 else 0.0
    return won + lost


def bernoulli_each(p: Floats, q: Floats | float) -> Floats:
    """`bernoulli` of every pair of elements, in the same bits.

    Args:
        p: of any shape, each from 0 to 1.
        q: of the same shape, or one number.

    >>> bernoulli_each(np.array([0.75, 1.0, 0.5]), 0.5).tolist()
    [0.13081203594113697, 0.6931471805599453, 0.0]
    """
    p, q = np.broadcast_arrays(p, q)
    impossible = ((q <= 0) & (p > 0)) | ((q >= 1) & (p < 1))
    won, lost = (p > 0) & ~impossible, (p < 1) & ~impossible
    total = np.zeros(p.shape)
    total[won] += p[won] * ln_each(p[won] / q[won])
    total[lost] += (1 - p[lost]) * ln_each((1 - p[lost]) / (1 - q[lost]))
    total[impossible] = inf
    return total
