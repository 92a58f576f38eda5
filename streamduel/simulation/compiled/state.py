"""The state that all kernels share, and random choices among arms."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled import random_words
from streamduel.simulation.compiled.jit import compiled
from streamduel.simulation.compiled.random_words import Words

NONE: Final = -1
"""No arm."""


class State(NamedTuple):
    """What all kernels read and write, besides the state of their own algorithm.

    Attributes:
        wins: (K, K), [i, j] is how often i has beaten j, a tie counting one half.
        plays: (K, K), [i, j] is how often i was first and j second.
        win_below: (K, K) thresholds of wins of `MatrixEnvironment`.
        tie_below: (K, K) thresholds of ties.
        words: the next words of the policy's generator.
        taken: [0] is the number of these words taken.
        outcome_words: the next words of the environment's generator.
        outcomes_taken: [0] is the number of these words taken.
        margin: the number of words that must be left for one more step.
    """

    wins: Floats
    plays: Integers
    win_below: Integers
    tie_below: Integers
    words: Words
    taken: Integers
    outcome_words: Words
    outcomes_taken: Integers
    margin: int


@compiled
def has_words(state: State) -> bool:
    """Whether there are enough words for one more step."""
    words_left: int = len(state.words) - state.taken[0]
    outcomes_left: int = len(state.outcome_words) - state.outcomes_taken[0]
    return words_left >= state.margin and outcomes_left > 0


@compiled
def below(state: State, n: int) -> int:
    """An integer from 0 to n - 1 from the policy's generator."""
    return random_words.below(n, state.words, state.taken)


@compiled
def coin(state: State, numerator: int, denominator: int) -> bool:
    """True with probability numerator / denominator, from the policy's generator."""
    return random_words.below(denominator, state.words, state.taken) < numerator


@compiled
def duel(state: State, first: int, second: int) -> float:
    """Simulate one duel of two different arms and count it.

    Returns:
        1.0 when the first wins, 0.0 when the second does, 0.5 for a tie.
    """
    u = np.int64(state.outcome_words[state.outcomes_taken[0]] >> np.uint64(11))
    state.outcomes_taken[0] += 1
    first_wins = 0.0
    if u < state.win_below[first, second]:
        first_wins = 1.0
    elif u < state.tie_below[first, second]:
        first_wins = 0.5
    state.plays[first, second] += 1
    state.wins[first, second] += first_wins
    state.wins[second, first] += 1 - first_wins
    return first_wins


@compiled
def nth(marked: Booleans, n: int) -> int:
    """The index of the marked element with n marked elements before it.

    >>> nth(np.array([False, True, False, True]), 1)
    3
    """
    for place in range(len(marked)):
        if marked[place]:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def number(marked: Booleans) -> int:
    """The number of marked elements."""
    total = 0
    for place in range(len(marked)):
        total += marked[place]
    return total


# Floats that are not negative have the same order as their bits, and a processor compares several
# integers at once.


@compiled
def one_of_largest(state: State, values: Floats, excluded: int) -> int:
    """The index of the largest value; if there are several, a random one.

    Args:
        state: provides a random word, if there are several.
        values: the largest must not be negative.
        excluded: an index that is not chosen if there are several, or `NONE`.
    """
    bits = values.view(np.int64)
    largest, tied = np.int64(0), 0
    for place in range(len(values)):
        largest = max(largest, bits[place])
    for place in range(len(values)):
        tied += bits[place] == largest
    n = 0
    if tied == 1:
        excluded = NONE
    else:
        n = below(state, tied - (excluded != NONE and bits[excluded] == largest))
    for place in range(len(values)):
        if bits[place] == largest and place != excluded:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def one_of_least(state: State, values: Floats) -> int:
    """The index of the least value; if there are several, a random one.

    Args:
        state: provides a random word, if there are several.
        values: none may be negative.
    """
    bits = values.view(np.int64)
    least, tied = np.int64(least_bits(values)), 0
    for place in range(len(values)):
        tied += bits[place] == least
    n = below(state, tied)
    for place in range(len(values)):
        if bits[place] == least:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def least_of(values: Floats) -> float:
    """The least value; none may be negative."""
    bits, least, place = values.view(np.int64), least_bits(values), 0
    while bits[place] != least:
        place += 1
    result: float = values[place]
    return result


@compiled
def least_bits(values: Floats) -> int:
    """The bits of the least value; none may be negative."""
    bits = values.view(np.int64)
    least = bits[0]
    for place in range(len(values)):
        least = min(least, bits[place])
    return least  # type: ignore[no-any-return]
