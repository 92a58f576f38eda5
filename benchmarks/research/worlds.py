"""Preference matrices drawn from seeds, by family, and an ideal number of duels for each."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Booleans, Floats
from streamduel.preference.winners import condorcet_winner, copeland_winners
from streamduel.simulation.matrices import (
    ARXIV,
    bradley_terry,
    cyclic,
    random_condorcet,
    uniform,
)

TUNED: Final = 2026
"""The seed of the half on which the policy was developed."""

HELD_OUT: Final = 62_031
"""The seed of the other half."""


class World(NamedTuple):
    """A preference matrix of a family.

    Attributes:
        family: its name.
        n_arms: K.
        half: "tuned", "held out" or "published".
        preferences: (K, K).
    """

    family: str
    n_arms: int
    half: str
    preferences: Floats

    @property
    def name(self) -> str:
        """In results."""
        return f"{self.family}, K = {self.n_arms}, {self.half}"

    @property
    def seed(self) -> int:
        """Of the runs; the halves share no random number."""
        return HELD_OUT if self.half == "held out" else TUNED

    @property
    def winner(self) -> int | None:
        """The Condorcet winner."""
        return condorcet_winner(self.preferences)

    @property
    def winners(self) -> frozenset[int]:
        """The right champions."""
        return frozenset(copeland_winners(self.preferences).tolist())


class Family(NamedTuple):
    """How the matrices of a family are drawn.

    Attributes:
        what: for the page.
        sizes: K of each matrix of a half.
        draw: makes one.
    """

    what: str
    sizes: tuple[int, ...]
    draw: Callable[[int, Generator], Floats]


def between(generator: Generator, low: float, high: float, n: int) -> Floats:
    """Uniform numbers."""
    numbers: Floats = low + (high - low) * uniform(generator, n)
    return numbers


def ladder(n_arms: int, generator: Generator, step: float) -> Floats:
    """Bradley-Terry; the utilities of neighbours differ by 0.5 to 1.5 steps."""
    return bradley_terry((-np.cumsum(between(generator, 0.5, 1.5, n_arms) * step)).tolist())


def no_winner(n_arms: int, generator: Generator) -> Floats:
    """Random preferences, drawn again until no arm beats all others."""
    while True:
        p = random_condorcet(n_arms, generator)
        flips = np.where(uniform(generator, n_arms - 1) < 0.5, -1.0, 1.0)
        p[0, 1:] = 0.5 + (p[0, 1:] - 0.5) * flips
        p[1:, 0] = 1 - p[0, 1:]
        if condorcet_winner(p) is None:
            return p


def above_a_cycle(n_arms: int, generator: Generator) -> Floats:
    """The winner wins 55 to 60 %; of the others, each loses 90 % of some pairs."""
    p = np.full((n_arms, n_arms), 0.5)
    p[1:, 1:] = 0.5 + (cyclic(n_arms - 1, 0.25) - 0.5) * 1.6
    p[0, 1:] = between(generator, 0.55, 0.6, n_arms - 1)
    p[1:, 0] = 1 - p[0, 1:]
    return p


def many_winners(n_arms: int, generator: Generator) -> Floats:
    """A third of the arms are in a cycle, and each of them beats all the others."""
    top = n_arms // 3 // 2 * 2 + 1
    p = np.full((n_arms, n_arms), 0.5)
    p[:top, :top] = cyclic(top, 0.1)
    p[top:, top:] = ladder(n_arms - top, generator, 0.2)
    p[:top, top:] = between(generator, 0.6, 0.8, top * (n_arms - top)).reshape(top, -1)
    p[top:, :top] = 1 - p[:top, top:].T
    return p


def near_tie(n_arms: int, generator: Generator) -> Floats:
    """The winner wins 50.5 % against the second, and 55 to 65 % against all others."""
    p = random_condorcet(n_arms, generator)
    p[0, 1:] = between(generator, 0.55, 0.65, n_arms - 1)
    p[1, 2:] = between(generator, 0.55, 0.65, max(0, n_arms - 2))
    p[0, 1] = 0.505
    for arm in (0, 1):
        p[arm + 1 :, arm] = 1 - p[arm, arm + 1 :]
    return p


FAMILIES: Final = {
    "Bradley-Terry, narrow": Family(
        "neighbours' utilities differ by 0.05 to 0.15",
        (6, 16, 24),
        lambda n, generator: ladder(n, generator, 0.1),
    ),
    "Bradley-Terry, wide": Family(
        "neighbours' utilities differ by 0.15 to 0.45",
        (6, 16, 32),
        lambda n, generator: ladder(n, generator, 0.3),
    ),
    "random, a winner": Family(
        "gaps from 0.05 to 0.35, one arm beats all others", (4, 12, 32), random_condorcet
    ),
    "winner above a cycle": Family(
        "the winner's gaps are 0.05 to 0.1, those of the cycle below it 0.4",
        (4, 10, 16),
        above_a_cycle,
    ),
    "near tie": Family(
        "the winner's gap to the second is 0.005, other gaps of both 0.05 to 0.15",
        (2, 3, 8),
        near_tie,
    ),
    "many arms": Family(
        "Bradley-Terry, utilities over a range of 6",
        (64, 128, 500),
        lambda n, generator: ladder(n, generator, 6 / n),
    ),
    "random, no winner": Family(
        "gaps from 0.05 to 0.35, no arm beats all others", (5, 10, 20), no_winner
    ),
    "cycle": Family(
        "each arm beats the next half; one gap, from 0.05 to 0.2",
        (3, 5, 9, 15),
        lambda n, generator: cyclic(n, between(generator, 0.05, 0.2, 1).item()),
    ),
    "many Copeland winners": Family(
        "a third of the arms, in a cycle of gap 0.1, beat the others by 0.1 to 0.3",
        (9, 16, 30),
        many_winners,
    ),
}


def draw(family: str, n_arms: int, half: str) -> World:
    """A matrix of a family."""
    seed = TUNED if half == "tuned" else HELD_OUT
    generator = Generator(seed * 1000 + 600 * list(FAMILIES).index(family) + n_arms)
    return World(family, n_arms, half, FAMILIES[family].draw(n_arms, generator))


def worlds(most_arms: int, folder: Path | None = None) -> list[World]:
    """All matrices of at most so many arms; with a folder, those of its text files, too."""
    found = [
        draw(family, n_arms, half)
        for family, each in FAMILIES.items()
        for n_arms in each.sizes
        for half in ("tuned", "held out")
        if n_arms <= most_arms
    ]
    found.append(World("arXiv", 6, "published", np.array(ARXIV)))
    for path in sorted(folder.glob("*.txt")) if folder else []:
        p = np.loadtxt(path)
        if not np.array_equal(p, ARXIV):
            found.append(World(path.stem, len(p), "published", p))
    return found


def ideal(preferences: Floats, delta: float) -> float:
    """Duels that put out every arm but the Condorcet winner, if each bet were on the best rival.

    Σ_w ln(1/δ) / max_j d(p_jw, 1/2), d the divergence in nats; over all arms w if none beats all
    others. It is no lower bound for every policy, since E_w may multiply the bets of several
    rivals; infinite if an arm that is not the winner loses to none.
    """
    p = np.clip(preferences, 1e-12, 1 - 1e-12)
    worth = p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))
    loses: Booleans = p < 0.5
    best = np.where(loses, worth, 0.0).max(axis=1)
    winner = condorcet_winner(preferences)
    if winner is not None:
        best = np.delete(best, winner)
    return -log(delta) * float((1 / best).sum()) if best.min() > 0 else inf


def geometric_mean(values: list[float]) -> float:
    """The geometric mean; NaN of none."""
    return exp(sum(map(log, values)) / len(values)) if values else float("nan")
