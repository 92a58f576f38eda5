"""The randomness of a policy: integers whose every bit is the same on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from streamduel.errors import PolicyError

_WORD = 1 << 64
_LOW_BITS = _WORD - 1
_STATE_BITS = 128


class Generator:
    """Unbiased draws from numpy's PCG64, by exact integer arithmetic alone.

    Why not `numpy.random.Generator`: numpy promises the stream of a *bit* generator across its
    versions, but not that of its distributions; a snapshot taken under one numpy must go on
    identically under the next. So only `random_raw()` is asked for, and everything above it is
    integer arithmetic. Equal seeds give equal draws on every machine.

    A draw that has only one possible result takes nothing from the stream.

    Args:
        seed: any integer from 0, of any size.

    Raises:
        PolicyError: the seed is negative or no integer.

    >>> generator = Generator(seed=7)
    >>> [generator.below(6) for _ in range(10)]
    [3, 5, 4, 1, 1, 5, 0, 4, 4, 2]
    >>> generator.permutation(5)
    [3, 2, 0, 4, 1]

    Source: M. O'Neill, "PCG: A family of simple fast space-efficient statistically good algorithms
    for random number generation", 2014. D. Lemire, "Fast random integer generation in an
    interval", ACM TOMACS 29(1), 2019 (`below`).
    """

    __slots__ = ("_bits", "_raw")

    def __init__(self, seed: int = 0) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise PolicyError(f"seed must be an integer from 0 (found {seed!r}).")
        self._bits = np.random.PCG64(int(seed))
        self._raw = self._bits.random_raw

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1, each with the same probability.

        The high word of `raw * n` is uniform once the few low words that would favour some results
        are rejected; a rejection happens with probability below n / 2**64.

        Args:
            n: how many results are possible, from 1 to 2**64.

        Raises:
            PolicyError: n is outside that range.
        """
        if n == 1:
            return 0
        if not 1 < n <= _WORD:
            raise PolicyError(f"a draw must have from 1 to 2**64 possible results (found {n!r}).")
        product = self._raw() * n
        if product & _LOW_BITS < n:
            surplus = _WORD % n
            while product & _LOW_BITS < surplus:
                product = self._raw() * n
        return int(product >> 64)

    def coin(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator / denominator, exactly.

        Args:
            numerator: from 0 to `denominator`.
            denominator: from 1 to 2**64.

        Raises:
            PolicyError: they are no probability.
        """
        if not 0 <= numerator <= denominator:
            raise PolicyError(
                f"a coin's probability must be from 0 to 1 (found {numerator!r}/{denominator!r})."
            )
        return self.below(denominator) < numerator

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """The next n integers from 0 to 2**64 - 1 at once, for draws by array operations.

        Args:
            n: how many, from 0.
        """
        return self._raw(n)

    def skip(self, n: int) -> None:
        """Go on as if n words had been drawn, in constant time.

        Args:
            n: how many, from 0.
        """
        self._bits.advance(n)

    def permutation(self, n: int) -> list[int]:
        """The integers from 0 to n - 1 in an order drawn uniformly (Fisher-Yates, from the end)."""
        order = list(range(n))
        for last in range(n - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def state_dict(self) -> dict[str, str]:
        """The state in hexadecimal text: JSON's numbers do not hold 128 bits."""
        state = self._bits.state["state"]
        return {"state": f"{state['state']:#034x}", "increment": f"{state['inc']:#034x}"}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Generator:
        """The generator whose `state_dict()` this was; it goes on where that one stood.

        Raises:
            PolicyError: this is not a generator's state.
        """
        generator = cls(0)
        generator._bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": _word(state, "state"), "inc": _word(state, "increment")},
            # Half of a word that a 32-bit draw left over; this class draws none.
            "has_uint32": 0,
            "uinteger": 0,
        }
        return generator


def _word(state: Mapping[str, Any], key: str) -> int:
    """A 128-bit integer from its hexadecimal text."""
    try:
        word = int(state[key], 16)
    except (KeyError, TypeError, ValueError):
        word = -1
    if not 0 <= word < 1 << _STATE_BITS:
        raise PolicyError(
            f"a generator's state must hold 128 bits in hexadecimal as '{key}' (found {state!r})."
        )
    return word
