"""Who beats whom if the preferences are drawn from what the duels leave open."""

from __future__ import annotations

import numpy as np

from streamduel.policies.base.beta import BetaPosterior, Truths
from streamduel.policies.base.generator import Generator
from streamduel.preference.counts import Integers


def beats(
    posterior: BetaPosterior, first: Integers, second: Integers, generator: Generator
) -> Truths:
    """One draw of "θ_ij > 1/2" for each of k pairs of different arms.

    Draws from the generator: a word for each pair with `few` duels; then θ_ij of the others.

    Args:
        posterior: of the preferences θ_ij.
        first: (k,) arms i.
        second: (k,) arms j; no pair twice, since θ_ji = 1 - θ_ij is not independent.
        generator: where the draws come from.
    """
    many = posterior.many[first, second]
    if many.all():
        sampled: Truths = posterior.sample(first, second, generator) > 0.5
        return sampled
    won = np.empty(len(first), dtype=np.bool_)
    few = ~many
    i, j = first[few], second[few]
    ascending = i < j
    won[few] = posterior.better(np.minimum(i, j), np.maximum(i, j), generator) == ascending
    if many.any():
        won[many] = posterior.sample(first[many], second[many], generator) > 0.5
    return won
