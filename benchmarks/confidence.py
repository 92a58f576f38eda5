"""False findings when results are checked after every duel: the numbers and figure of one page.

    python -m benchmarks.confidence [--experiments 10000] [--duels 10000] [--out docs]

The two rankers are equal, so finding one of them better is wrong. An ordinary test is compared with
the confidence of `streamduel.preference.evidence`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.papers import picture
from benchmarks.papers.picture import Curve
from benchmarks.policy_regret import PAGE, put_in
from streamduel.preference.evidence import log_evidence_of, nats

SEED: Final = 2026
CONFIDENCE: Final = 0.95
NORMAL: Final = 1.959964
"""Standard deviations exceeded by chance in 5 % of all cases."""
IN_TABLE: Final = (10, 100, 1_000, 10_000)
CHANCES: Final = (0.52, 0.55, 0.6)
"""Win rates of the better of two rankers, for the duels until confidence."""


class Errors(NamedTuple):
    """Shares of experiments with a false finding.

    Attributes:
        duels: numbers of duels.
        ordinary: with an ordinary test after every duel.
        ours: with anytime-valid confidence after every duel.
    """

    duels: list[int]
    ordinary: list[float]
    ours: list[float]


def errors(experiments: int, duels: int) -> Errors:
    """Test after every duel of many experiments."""
    users = np.random.default_rng(SEED)
    wins = np.zeros(experiments)
    fooled, sure = np.zeros(experiments, dtype=bool), np.zeros(experiments, dtype=bool)
    enough = nats(CONFIDENCE, 2, "condorcet")
    marks = set(np.geomspace(10, duels, 40).astype(int).tolist()) | set(IN_TABLE)
    found = Errors([], [], [])
    for n in range(1, duels + 1):
        wins += users.random(experiments) < 0.5
        if n >= 10:  # no test before
            fooled |= np.abs(wins - n / 2) > NORMAL * np.sqrt(n) / 2
        ahead = np.maximum(wins, n - wins)
        sure |= log_evidence_of(ahead, n - ahead) >= enough
        if n in marks:
            found.duels.append(n)
            found.ordinary.append(float(fooled.mean()))
            found.ours.append(float(sure.mean()))
    return found


def duels_until_sure(chance: float) -> int:
    """The median number of duels until the better of two rankers is found; exact, nothing is drawn.

    Args:
        chance: its win rate.
    """
    enough = nats(CONFIDENCE, 2, "condorcet")
    unsure = np.ones(1)  # by wins: the probability of as many, without confidence so far
    n = 0
    while unsure.sum() > 0.5:
        n += 1
        unsure = np.append(unsure * (1 - chance), 0.0) + np.append(0.0, unsure * chance)
        wins = np.arange(n + 1.0)
        unsure[log_evidence_of(wins, n - wins) >= enough] = 0.0
    return n


def draw(found: Errors, path: Path) -> None:
    """The figure."""
    figure, axes = picture.panels(1, 1, 5.2, 3.2)
    panel = axes[0][0]
    curves = [
        Curve("ordinary 95 % test after every duel", 1, found.duels, found.ordinary),
        Curve("champion confidence ≥ 0.95", 0, found.duels, found.ours),
    ]
    picture.add(panel, curves)
    panel.axhline(1 - CONFIDENCE, color="#555555", linewidth=0.8, linestyle=":")
    picture.finish(panel, "two equal rankers", "duels", "share of wrong findings so far")
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False)
    picture.save(figure, path)


def table(found: Errors) -> list[str]:
    """Markdown."""
    lines = ["| duels | ordinary test, wrong | champion confidence, wrong |", "|--:|--:|--:|"]
    for n, ordinary, ours in zip(found.duels, found.ordinary, found.ours, strict=True):
        if n in IN_TABLE:
            lines.append(f"| {n:,} | {ordinary:.1%} | {ours:.1%} |")
    lines += ["", "| the better ranker wins | duels until sure, median |", "|--:|--:|"]
    lines += [f"| {chance:.0%} | {duels_until_sure(chance):,} |" for chance in CHANCES]
    return lines


def main() -> None:
    """Measure, draw, write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--experiments", type=int, default=10_000)
    arguments.add_argument("--duels", type=int, default=10_000)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    given = arguments.parse_args()
    found = errors(given.experiments, given.duels)
    draw(found, given.out / "images" / "confidence.png")
    put_in(given.out / PAGE, "confidence", table(found))


if __name__ == "__main__":
    main()
