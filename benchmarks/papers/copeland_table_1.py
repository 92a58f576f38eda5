"""Copeland paper, Table 1: which notions of a winner agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from benchmarks.papers.experiment import Experiment, Outcome, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL, of_arms, random_arms
from benchmarks.papers.notions_of_winner import (
    borda_winners,
    random_walk_winners,
    von_neumann_winner,
)
from benchmarks.papers.verdict import Check
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import copeland_winners

NOTIONS = ("Copeland", "von Neumann", "Borda", "random walk")
CONTAINED = "Copeland winners all in the von Neumann support"
PUBLISHED: Mapping[str, float] = {
    "Copeland, von Neumann": 0.9994,
    "Copeland, Borda": 0.5149,
    "Copeland, random walk": 0.5615,
    "von Neumann, Borda": 0.7766,
    "von Neumann, random walk": 0.8211,
    "Borda, random walk": 0.9481,
    CONTAINED: 0.942,
}
SEED = 1
ERRORS = 3.0
"""Standard errors within which a share agrees: three, because there are seven of them."""


def winners(p: Floats) -> dict[str, set[int]]:
    """The winners by each notion."""
    support = np.flatnonzero(von_neumann_winner(p))
    found = (copeland_winners(p), support, borda_winners(p), random_walk_winners(p))
    return {name: set(arms.tolist()) for name, arms in zip(NOTIONS, found, strict=True)}


def agreements(p: Floats) -> list[str]:
    """The entries of the table in which a matrix is counted."""
    by = winners(p)
    agreeing = [f"{one}, {other}" for one, other in combinations(NOTIONS, 2) if by[one] & by[other]]
    if by["Copeland"] <= by["von Neumann"]:
        agreeing.append(CONTAINED)
    return agreeing


def run(laboratory: Laboratory) -> Outcome:
    """Subsets of all sizes, the same number of each."""
    p = laboratory.matrix(INFORMATIONAL)
    each = laboratory.either(40, 1)
    random = np.random.default_rng(SEED)
    hits: Counter[str] = Counter()
    for size in range(2, len(p) + 1):
        for _ in range(each):
            hits.update(agreements(of_arms(p, random_arms(len(p), size, random))))
    trials = each * (len(p) - 1)
    shares = {entry: hits[entry] / trials for entry in PUBLISHED}
    rows = [
        [entry, f"{100 * PUBLISHED[entry]:.2f}", f"{100 * shares[entry]:.2f}"
         f" ± {100 * error_of(PUBLISHED[entry], trials):.2f}"]
        for entry in PUBLISHED
    ]  # fmt: skip
    checks = judge(shares, trials)
    held = [check for check in checks if check.standing == "holds"]
    return Outcome(
        method=f"{trials:,} random subsets of the {len(p)} rankers under informational clicks,"
        f" {each} of each size from 2 to {len(p)} (the paper: 10,000 of each). Two notions overlap"
        " where they have a winner in common; von Neumann's are the arms that its distribution"
        " draws. The standard error is that of so many draws from the published share.",
        measured=f"{len(held)} of {len(checks)} shares agree",
        checks=checks,
        tables=[Table(["overlap of", "published, %", "measured, %"], rows)],
    )


def error_of(published: float, trials: int) -> float:
    """The standard error of a share if the published one is true."""
    return math.sqrt(published * (1 - published) / trials)


def judge(shares: Mapping[str, float], trials: int) -> list[Check]:
    """Compare each share with the published one."""
    return [
        Check(
            f"{entry}: {100 * published:.2f} %, within three standard errors",
            f"{100 * shares[entry]:.2f} %",
            "holds"
            if abs(shares[entry] - published) <= ERRORS * error_of(published, trials)
            else "fails",
        )
        for entry, published in PUBLISHED.items()
    ]


EXPERIMENT = Experiment(
    name="copeland_table_1",
    title="Copeland, Table 1",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, appendix"
    " C.2",
    claim="Copeland and von Neumann winners nearly always overlap, and so do Borda and random walk"
    " winners; the first two overlap with the last two in half to four fifths of all matrices.",
    matrices=(INFORMATIONAL,),
    run=run,
)
