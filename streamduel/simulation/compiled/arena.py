"""Where compiled policies fight: wins, plays, the environment's thresholds, and words for both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.compiled import words
from streamduel.simulation.compiled.jit import compiled
from streamduel.simulation.compiled.words import Words


class Arena(NamedTuple):
    """What all kernels read and write, besides the state of their own algorithm.

    Attributes:
        wins: (K, K), [i, j] is how often i has beaten j, a tie being half a win.
        plays: (K, K), [i, j] is how often i was first and j second.
        win_below: (K, K) thresholds of `MatrixEnvironment`.
        tie_below: (K, K), likewise.
        draws: the next words of the policy's generator.
        drawn: [0] is how many of them have been taken.
        outcomes: the next words of the environment's generator.
        fought: [0] is how many of them have been taken.
        margin: as many draws one step may take, and is sure to find.
    """

    wins: Floats
    plays: Integers
    win_below: Integers
    tie_below: Integers
    draws: Words
    drawn: Integers
    outcomes: Words
    fought: Integers
    margin: int


@compiled
def is_stocked(arena: Arena) -> bool:
    """Whether there are words enough for one more step."""
    draws_left: int = len(arena.draws) - arena.drawn[0]
    outcomes_left: int = len(arena.outcomes) - arena.fought[0]
    return draws_left >= arena.margin and outcomes_left > 0


@compiled
def below(arena: Arena, n: int) -> int:
    """An integer from 0 to n - 1 from the policy's generator."""
    return words.below(n, arena.draws, arena.drawn)


@compiled
def coin(arena: Arena, numerator: int, denominator: int) -> bool:
    """True with this probability, from the policy's generator."""
    return words.below(denominator, arena.draws, arena.drawn) < numerator


@compiled
def fight(arena: Arena, first: int, second: int) -> float:
    """Fight one duel of two different arms and count it.

    Returns:
        1.0 when the first wins, 0.0 when the second does, 0.5 for a tie.
    """
    u = np.int64(arena.outcomes[arena.fought[0]] >> np.uint64(11))
    arena.fought[0] += 1
    first_wins = 0.0
    if u < arena.win_below[first, second]:
        first_wins = 1.0
    elif u < arena.tie_below[first, second]:
        first_wins = 0.5
    arena.plays[first, second] += 1
    arena.wins[first, second] += first_wins
    arena.wins[second, first] += 1 - first_wins
    return first_wins
