"""Random numbers from 64-bit words drawn ahead: `Generator`, compiled.

A kernel cannot call a generator. It reads words from an array, in the order in which
`Generator.below` would draw them; the generator is then rewound to the first word not taken.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from streamduel.policies.base.generator import PERIOD, Generator
from streamduel.preference.arrays import Integers
from streamduel.simulation.compiled.jit import compiled

Words = npt.NDArray[np.uint64]

_HALF: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_ZERO: Final = np.uint64(0)


def rewind(generator: Generator, n: int) -> None:
    """Undo the last n draws of words.

    >>> generator = Generator(seed=7)
    >>> words = generator.words(5).tolist()
    >>> rewind(generator, 3)
    >>> generator.words(3).tolist() == words[2:]
    True
    """
    generator.skip((PERIOD - n) % PERIOD)


@compiled
def multiply(word: np.uint64, n: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The high and the low word of the 128-bit product.

    >>> high, low = multiply(np.uint64(2**64 - 1), np.uint64(2**63 + 5))
    >>> int(high) * 2**64 + int(low) == (2**64 - 1) * (2**63 + 5)
    True
    """
    word_high, word_low = word >> _HALF, word & _LOW_HALF
    n_high, n_low = n >> _HALF, n & _LOW_HALF
    lowest = word_low * n_low
    middle = word_high * n_low + (lowest >> _HALF)
    other = word_low * n_high + (middle & _LOW_HALF)
    high = word_high * n_high + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (lowest & _LOW_HALF)


@compiled
def below(n: int, words: Words, taken: Integers) -> int:
    """An integer from 0 to n - 1, as `Generator.below(n)` draws it.

    Args:
        n: from 1 to 2**63 - 1.
        words: the generator's next words.
        taken: [0] is the number of words taken; updated.
    """
    if n == 1:
        return 0
    bound = np.uint64(n)
    high, low = multiply(words[taken[0]], bound)
    taken[0] += 1
    if low < bound:
        surplus = (_ZERO - bound) % bound  # 2**64 mod n
        while low < surplus:
            high, low = multiply(words[taken[0]], bound)
            taken[0] += 1
    # int() of numba would keep it unsigned, and unsigned and signed together become float64.
    return np.int64(high)  # type: ignore[return-value]


@compiled
def permute(order: Integers, words: Words, taken: Integers) -> None:
    """Fill an array of n with 0 to n - 1 in the order of `Generator.permutation(n)`."""
    for place in range(len(order)):
        order[place] = place
    for last in range(len(order) - 1, 0, -1):
        other = below(last + 1, words, taken)
        order[last], order[other] = order[other], order[last]
