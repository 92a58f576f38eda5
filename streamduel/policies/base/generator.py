"""Random integers with the same bits on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import integer
from streamduel.policies.base.state import State, convert

_WORD = 1 << 64
_LOW_BITS = _WORD - 1
_HALF = 1 << 32
PERIOD = 1 << 128
"""Words until the generator repeats itself: to skip nearly as many is to go back."""

_Item = TypeVar("_Item")

_Word128: TypeAlias = Annotated[str, Meta(pattern="^0x[0-9a-f]{32}$")]
"""128 bits in hexadecimal, which JSON's numbers do not hold."""


class _GeneratorState(State):
    """The state of PCG64."""

    state: _Word128
    increment: _Word128


class Generator:
    """Unbiased draws from numpy's PCG64, by exact integer arithmetic alone.

    `numpy.random.Generator` is not used: numpy guarantees the stream of a *bit* generator across
    versions, but not that of its distributions, and a snapshot must continue identically under the
    next numpy. So only `random_raw()` is called, and the rest is integer arithmetic. Equal seeds
    give equal draws on every machine.

    A draw with only one possible result takes nothing from the stream.

    Args:
        seed: any integer from 0, of any size.

    Attributes:
        lent: the words of `lend`, or None once they have been given back.
        ahead: how many of them have not been taken. A caller that takes some subtracts them.

    Raises:
        PolicyError: the seed is negative or not an integer.

    >>> generator = Generator(seed=7)
    >>> [generator.below(6) for _ in range(10)]
    [3, 5, 4, 1, 1, 5, 0, 4, 4, 2]
    >>> generator.permutation(5)
    [3, 2, 0, 4, 1]

    Source: M. O'Neill, "PCG: A family of simple fast space-efficient statistically good algorithms
    for random number generation", 2014. D. Lemire, "Fast random integer generation in an
    interval", ACM TOMACS 29(1), 2019 (`below`).
    """

    __slots__ = ("_bits", "ahead", "lent")

    def __init__(self, seed: int = 0) -> None:
        self._bits = np.random.PCG64(integer("seed", seed, minimum=0))
        self.ahead = 0
        self.lent: npt.NDArray[np.uint64] | None = None

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1, each with the same probability.

        The high word of `raw * n` is uniform once the few low words that favour some results are
        rejected, which happens with probability below n / 2**64.

        Args:
            n: how many results are possible, from 1 to 2**64.

        Raises:
            PolicyError: n is outside that range.
        """
        if n == 1:
            return 0
        if not 1 < n <= _WORD:
            raise PolicyError(f"a draw must have from 1 to 2**64 possible results (found {n!r}).")
        self._take_back()
        raw = self._bits.random_raw
        product = raw() * n
        if product & _LOW_BITS < n:
            surplus = _WORD % n
            while product & _LOW_BITS < surplus:
                product = raw() * n
        return int(product >> 64)

    def below_each(self, n: int, count: int) -> npt.NDArray[np.int64]:
        """(count,) draws of `below` by array operations; the same as one by one.

        Args:
            n: how many results are possible, from 2 to 2**32.
            count: the number of draws, from 0.
        """
        words = self.words(count)
        low, shift, size = words & np.uint64(_HALF - 1), np.uint64(32), np.uint64(n)
        if np.any(words * size < np.uint64(_WORD % n)):  # `below` rejects one of them
            self.skip(PERIOD - count)
            return np.array([self.below(n) for _ in range(count)], dtype=np.int64)
        drawn = ((words >> shift) * size + (low * size >> shift)) >> shift
        return drawn.astype(np.int64)

    def choose(self, items: Sequence[_Item]) -> _Item:
        """One of the items, each with the same probability.

        Args:
            items: at least one.
        """
        return items[self.below(len(items))]

    def choose_index(self, marks: npt.NDArray[np.bool_]) -> int:
        """The index of one of the true elements, each with the same probability.

        Args:
            marks: (n,), at least one of them true.
        """
        places = marks.nonzero()[0]
        return places.item(self.below(len(places)))

    def coin(self, numerator: int, denominator: int) -> bool:
        """True with probability numerator / denominator, exactly.

        Args:
            numerator: from 0 to `denominator`.
            denominator: from 1 to 2**64.

        Raises:
            PolicyError: they are not a probability.
        """
        if not 0 <= numerator <= denominator:
            raise PolicyError(
                f"a coin's probability must be from 0 to 1 (found {numerator!r}/{denominator!r})."
            )
        return self.below(denominator) < numerator

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """The next n integers from 0 to 2**64 - 1, for draws by array operations.

        Args:
            n: how many, from 0.
        """
        self._take_back()
        words: npt.NDArray[np.uint64] = self._bits.random_raw(n)
        return words

    def lend(self, n: int) -> npt.NDArray[np.uint64]:
        """The next n words, which are only taken one by one (`ahead`); for many small draws.

        Any other use of the generator takes back what is left of them.

        Args:
            n: how many, from 1.
        """
        self._take_back()
        self.lent, self.ahead = self._bits.random_raw(n), n
        return self.lent

    def _take_back(self) -> None:
        if self.lent is not None:
            self._bits.advance(PERIOD - self.ahead)
            self.lent, self.ahead = None, 0

    def skip(self, n: int) -> None:
        """Continue as if n words had been drawn, in constant time.

        Args:
            n: how many, from 0.
        """
        self._take_back()
        self._bits.advance(n)

    def permutation(self, n: int) -> list[int]:
        """The integers from 0 to n - 1 in an order drawn uniformly (Fisher-Yates, from the end)."""
        order = list(range(n))
        for last in range(n - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def state_dict(self) -> dict[str, str]:
        """The state, as JSON can hold it."""
        self._take_back()
        state = self._bits.state["state"]
        return {"state": f"{state['state']:#034x}", "increment": f"{state['inc']:#034x}"}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Generator:
        """The generator that returned this state; both draw equally from here on.

        Raises:
            PolicyError: this is not a generator's state.
        """
        saved = convert(state, _GeneratorState, "a generator's state")
        generator = cls(0)
        generator._bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": int(saved.state, 16), "inc": int(saved.increment, 16)},
            # The unused half of a word after a 32-bit draw; this class makes none.
            "has_uint32": 0,
            "uinteger": 0,
        }
        return generator
