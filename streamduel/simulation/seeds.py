"""Seeds of runs, which depend on the simulation's seed, the policy and the number of the run."""

from __future__ import annotations

from typing import Final, NamedTuple

# Imported by name: numpy would import it at its first use, during a run, and lose a Ctrl-C at that
# moment.
from numpy.random import SeedSequence

from streamduel.policies.base.generator import Generator

_WORDS: Final = 4
"""32-bit words of a seed: 128 bits, the size of the generator's state."""


class Seeds(NamedTuple):
    """The seeds of one policy's run: of its own generator, of the outcomes and of the delays."""

    policy: int
    environment: int
    delay: int


def run_seeds(seed: int, run: int, name: str) -> Seeds:
    """The seeds of a run of a policy; runs are numbered from 0.

    >>> run_seeds(7, 0, "rucb").policy == run_seeds(7, 0, "ccb").policy
    False
    """
    sequence = SeedSequence(seed, spawn_key=(run, *name.encode()))
    words = sequence.generate_state(_WORDS * len(Seeds._fields))
    return Seeds(*(_joined(part.tolist()) for part in words.reshape(-1, _WORDS)))


def arrangement(seed: int, run: int, n_arms: int) -> list[int]:
    """The order of the arms in a run, the same for every policy.

    The best arm is often the first in a published matrix; without shuffling, a policy that prefers
    low indices would gain. The run's arm a is the matrix's arm `arrangement[a]`.

    >>> arrangement(7, 0, 6), arrangement(7, 1, 6)
    ([0, 4, 5, 3, 2, 1], [0, 3, 1, 4, 2, 5])
    """
    return _generator(seed, (run,)).permutation(n_arms)


def matrix_generator(seed: int, name: str) -> Generator:
    """The generator that a random preference matrix of a kind is drawn from."""
    return _generator(seed, (0, *b"a world of ", *name.encode()))


def _generator(seed: int, key: tuple[int, ...]) -> Generator:
    sequence = SeedSequence(seed, spawn_key=key)
    return Generator(_joined(sequence.generate_state(_WORDS).tolist()))


def _joined(words: list[int]) -> int:
    """One integer from 32-bit words, the lowest first."""
    return sum(word << (32 * place) for place, word in enumerate(words))
