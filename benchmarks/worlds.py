"""The preference matrices on which policies are compared: drawn from seeds, and published."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.papers.matrices import (
    INFORMATIONAL,
    NAVIGATIONAL,
    WITH_WINNER,
    WITHOUT_WINNER,
    condorcet_subsets,
    of_arms,
)
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import read
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.matrices import (
    ARXIV,
    MAX_GAP,
    MIN_GAP,
    bradley_terry,
    cyclic,
    random_condorcet,
    random_utilities,
    uniform,
)

SEED: Final = 20_261_122
"""Of the drawn matrices: chosen before the first measurement on them."""

CLOSE: Final = 0.05
"""The deviation of the utilities of near ties: the best arm wins 51 to 53 % of its duels."""


class World(NamedTuple):
    """Preferences, and whether one arm beats all others."""

    title: str
    preferences: Floats

    @property
    def regret(self) -> str:
        """The regret that is defined on it."""
        return "copeland" if condorcet_winner(self.preferences) is None else "condorcet"


def without_winner(n_arms: int, generator: Generator) -> Floats:
    """Random preferences of which no arm beats all others; matrices with a winner are redrawn."""
    rows, columns = np.triu_indices(n_arms, k=1)
    while True:
        size, sign = uniform(generator, 2 * len(rows)).reshape(2, -1)
        p = np.full((n_arms, n_arms), 0.5)
        p[rows, columns] += (MIN_GAP + (MAX_GAP - MIN_GAP) * size) * np.where(sign < 0.5, 1, -1)
        p[columns, rows] = 1 - p[rows, columns]
        if condorcet_winner(p) is None:
            return p


def arithmetic() -> Floats:
    """Eight arms in order, p_ij = 1/2 + 0.05 (j - i)."""
    rank = np.arange(8)
    return np.asarray(0.5 + 0.05 * (rank[None, :] - rank[:, None]), dtype=np.float64)


def above_others(best: Floats, others: int) -> Floats:
    """The best arms, and others that win 30 % of their duels with them and are equal."""
    k = len(best)
    p = np.full((k + others,) * 2, 0.5)
    p[:k, :k], p[:k, k:], p[k:, :k] = best, 0.7, 0.3
    return p


def below_one() -> Floats:
    """Three arms in a strong cycle, and one that wins 60 % of its duels with each of them."""
    p = np.full((4, 4), 0.4)
    p[0], p[1:, 1:] = 0.6, cyclic(3, MAX_GAP)
    np.fill_diagonal(p, 0.5)
    return p


def drawn() -> dict[str, World]:
    """A dozen matrices from one seed, by a short name."""
    generator = Generator(SEED)
    found = {}
    for n_arms, copies in ((6, 2), (16, 2), (64, 1)):
        for copy in "ab"[:copies]:
            p = bradley_terry(random_utilities(n_arms, generator))
            found[f"bt{n_arms}{copy}"] = World(f"Bradley-Terry {n_arms}{copy}", p)
    for copy in "ab":
        p = random_condorcet(12, generator)
        found[f"winner12{copy}"] = World(f"random 12{copy}", p)
    for copy in "ab":
        p = without_winner(8, generator)
        found[f"none8{copy}"] = World(f"no winner 8{copy}", p)
    for k in (5, 7):
        found[f"cycle{k}"] = World(f"cycle of {k} above 3", above_others(cyclic(k), 3))
    close = [CLOSE * utility for utility in random_utilities(8, generator)]
    return found | {"close": World("near ties 8", bradley_terry(close))}


def published(folder: Path | None) -> dict[str, World]:
    """The published matrices, by a short name; those of MSLR only with a folder of its files."""
    found = {"arxiv": World("arXiv 6", ARXIV), "order": World("in order 8", arithmetic())}
    found["one"] = World("one above a cycle of 3", below_one())
    if folder is not None:
        five = read(folder / INFORMATIONAL)
        subset = condorcet_subsets(read(folder / NAVIGATIONAL), 30, 1, SEED)[0]
        found["mslr5"] = World("MSLR 5", of_arms(five, WITH_WINNER))
        found["mslr30"] = World("MSLR 30", subset)
        found["mslr5none"] = World("MSLR 5, no winner", of_arms(five, WITHOUT_WINNER))
    return found
