"""Randomness for interleaving: whatever has `getrandbits`, and what is drawn with it."""

from __future__ import annotations

from typing import Protocol


class RandomBits(Protocol):
    """A source of randomness; `random.Random(seed)` is one, and so is the module `random`."""

    def getrandbits(self, k: int, /) -> int:
        """An integer of k random bits."""
        ...


def below(n: int, rng: RandomBits) -> int:
    """An integer from 0 to n - 1, each with the same probability.

    As many bits as n - 1 has are drawn until they are below n: twice at most, on average.

    Args:
        n: how many results are possible, from 1. With one, nothing is drawn.
        rng: what the bits are drawn from.

    >>> from random import Random
    >>> rng = Random(7)
    >>> [below(6, rng) for _ in range(10)]
    [2, 1, 3, 5, 0, 0, 4, 0, 2, 4]
    """
    if n == 1:
        return 0
    bits = (n - 1).bit_length()
    while (drawn := rng.getrandbits(bits)) >= n:
        pass
    return drawn


def uniform(rng: RandomBits) -> float:
    """A number from 0 to below 1, a multiple of 2**-53.

    Args:
        rng: 53 bits of it are drawn.
    """
    return rng.getrandbits(53) * 2.0**-53
