"""What a run draws from: seeds that depend on nothing but what is simulated."""

from __future__ import annotations

from typing import Final, NamedTuple

# By name, so that it is imported here: numpy would import it on first use, in the middle of a run,
# and while it does so, a Ctrl-C is lost.
from numpy.random import SeedSequence

from streamduel.policies.base.generator import Generator

_WORDS: Final = 4
"""A seed is made of so many 32-bit words: 128 bits, as many as the generator's state has."""


class Seeds(NamedTuple):
    """The seeds of one policy's run.

    Attributes:
        policy: of the policy's own generator.
        environment: of the outcomes.
        delay: of how long the outcomes take.
    """

    policy: int
    environment: int
    delay: int


def run_seeds(seed: int, run: int, name: str) -> Seeds:
    """The seeds of one run, whichever process it is in and whatever else is simulated.

    Args:
        seed: of the whole simulation, an integer from 0.
        run: its number, from 0.
        name: of the policy.

    >>> run_seeds(7, 0, "rucb").policy == run_seeds(7, 0, "ccb").policy
    False
    """
    sequence = SeedSequence(seed, spawn_key=(run, *name.encode()))
    words = sequence.generate_state(_WORDS * len(Seeds._fields))
    return Seeds(*(_joined(part.tolist()) for part in words.reshape(-1, _WORDS)))


def arrangement(seed: int, run: int, n_arms: int) -> list[int]:
    """In which order a run has the arms: the same for every policy.

    The best arm is often the first in a published matrix, and a policy that prefers low indices
    would gain by it.

    Args:
        seed: of the whole simulation, an integer from 0.
        run: its number, from 0.
        n_arms: K.

    Returns:
        K arms of the matrix: the run's arm a is the matrix's arm `arrangement[a]`.

    >>> arrangement(7, 0, 6), arrangement(7, 1, 6)
    ([0, 4, 5, 3, 2, 1], [0, 3, 1, 4, 2, 5])
    """
    return _generator(seed, (run,)).permutation(n_arms)


def world_generator(seed: int, name: str) -> Generator:
    """The generator that a random preference matrix is drawn from.

    Args:
        seed: of the whole simulation, an integer from 0.
        name: of the kind of matrix.
    """
    return _generator(seed, (0, *b"a world of ", *name.encode()))


def _generator(seed: int, key: tuple[int, ...]) -> Generator:
    sequence = SeedSequence(seed, spawn_key=key)
    return Generator(_joined(sequence.generate_state(_WORDS).tolist()))


def _joined(words: list[int]) -> int:
    """One integer of 32-bit words, the lowest first."""
    return sum(word << (32 * place) for place, word in enumerate(words))
