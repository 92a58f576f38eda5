"""All interleaving methods, each as one that takes two rankings, and rankings to try them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from streamduel.interleaving import INTERLEAVINGS, MULTILEAVINGS, Interleave, Multileave, optimised
from streamduel.interleaving.base import Interleaved, RandomBits, Team


def _of_two(multileave: Multileave) -> Interleave:
    """A multileaving method with two rankers, who are a and b."""

    def interleave(
        list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
    ) -> Interleaved[Any]:
        docs, teams = multileave([list_a, list_b], length, rng)
        sides: dict[int | None, Team] = {0: "a", 1: "b", None: None}
        return Interleaved(docs, [sides[team] for team in teams])

    return interleave


METHODS: dict[str, Interleave] = {
    **INTERLEAVINGS,
    **{name: _of_two(multileave) for name, multileave in MULTILEAVINGS.items()},
}

Draw = Callable[[RandomBits], Interleaved[Any]]


def prepared(name: str, list_a: list[Any], list_b: list[Any], length: int) -> Draw:
    """A method that makes many lists of the same two rankings."""
    if name == "optimised":  # its solution is the same each time
        return optimised.solve(list_a, list_b, length).draw
    return lambda rng: METHODS[name](list_a, list_b, length, rng)


LONGEST = {"optimised": optimised.MAX_LENGTH}
"""The longest list of a method that has a limit."""

BIASED = {"balanced": "one coin decides the whole list; see its own tests for by how much"}
"""Methods whose teams are not equally likely at each rank, and why."""

PAIRS: dict[str, tuple[list[int], list[int]]] = {
    "identical": ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    "reversed": ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]),
    "shifted": ([1, 2, 3, 4, 5], [2, 3, 4, 5, 1]),
    "disjoint": ([1, 2, 3, 4], [5, 6, 7, 8]),
    "one inside the other": ([1, 2, 3, 4, 5, 6], [4, 2]),
    "one at the end of the other": ([5, 6], [1, 2, 3, 4, 5, 6]),
    "partly the same": ([1, 2, 3, 4], [3, 5, 1, 6]),
    "one short": ([1], [2, 3, 4, 5]),
    "one short and the same": ([1], [1, 2, 3]),
    "one empty": ([], [1, 2, 3]),
    "the other empty": ([1, 2, 3], []),
    "both empty": ([], []),
}

rankings = st.lists(st.integers(0, 9), unique=True, max_size=7)
lengths = st.integers(0, 10)
seeds = st.integers(0, 2**32)
