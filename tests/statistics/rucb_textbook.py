"""The bands of `test_rucb_regret`, from a RUCB that shares no code with streamduel.

    python tests/statistics/rucb_textbook.py

Algorithm 1 line by line in plain numpy, many runs side by side, K x K bounds anew at every step,
numpy's own generator, `numpy.log`. Prints, per checkpoint, mean and standard deviation of the
regret of one run.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

# Yue and Joachims, "Beat the Mean Bandit", ICML 2011: six retrieval functions of arXiv.org.
ARXIV = np.array(
    [
        [0.50, 0.55, 0.55, 0.54, 0.61, 0.61],
        [0.45, 0.50, 0.55, 0.55, 0.58, 0.60],
        [0.45, 0.45, 0.50, 0.54, 0.51, 0.56],
        [0.46, 0.45, 0.46, 0.50, 0.54, 0.50],
        [0.39, 0.42, 0.49, 0.46, 0.50, 0.51],
        [0.39, 0.40, 0.44, 0.50, 0.49, 0.50],
    ]
)


class Runs:
    """Many independent runs of RUCB, arms shuffled in each."""

    def __init__(self, runs: int, seed: int, *, champion_set: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.each = np.arange(runs)
        n_arms = len(ARXIV)
        arms = self.random.permuted(np.tile(np.arange(n_arms), (runs, 1)), axis=1)
        self.chances = ARXIV[arms[:, :, None], arms[:, None, :]]
        self.gaps = ARXIV[0, arms] - 0.5
        self.wins = np.zeros((runs, n_arms, n_arms))
        self.champion_set = champion_set
        self.in_set = np.zeros((runs, n_arms), dtype=bool)

    def step(self, t: int) -> Floats:
        """Regret of one duel in each run."""
        upper = self.upper(0.51 * np.log(t))
        candidates: Truths = np.all(upper >= 0.5, axis=2)
        champion = self.one_of(self.champion_pool(candidates))
        against = upper[self.each, :, champion]
        best = against == against.max(axis=1, keepdims=True)
        tied = best.sum(axis=1) > 1
        best[self.each[tied], champion[tied]] = False
        challenger = self.one_of(best)
        won = self.random.random(len(self.each)) < self.chances[self.each, champion, challenger]
        winner, loser = np.where(won, champion, challenger), np.where(won, challenger, champion)
        apart = champion != challenger
        self.wins[self.each[apart], winner[apart], loser[apart]] += 1
        regret: Floats = (self.gaps[self.each, champion] + self.gaps[self.each, challenger]) / 2
        return regret

    def upper(self, scale: float) -> Floats:
        played = self.wins + self.wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = self.wins / played + np.sqrt(scale / played)
        upper: Floats = np.where(played > 0, bounds, 2.0)
        upper[:, np.eye(len(ARXIV), dtype=bool)] = 0.5
        return upper

    def champion_pool(self, candidates: Truths) -> Truths:
        """The arms from which each run draws its champion uniformly."""
        pool = candidates | ~candidates.any(axis=1, keepdims=True)
        if not self.champion_set:
            return pool
        size = candidates.sum(axis=1)
        self.in_set &= candidates
        self.in_set[size == 1] = candidates[size == 1]
        holds = self.in_set.any(axis=1) & (size > 1)
        kept = holds & (self.random.random(len(holds)) < 0.5)
        pool[holds] = candidates[holds] & ~self.in_set[holds]
        pool[kept] = self.in_set[kept]
        return pool

    def one_of(self, pool: Truths) -> npt.NDArray[np.intp]:
        drawn: npt.NDArray[np.intp] = np.where(pool, self.random.random(pool.shape), -1).argmax(1)
        return drawn


def main() -> None:
    """Run and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=4_000)
    arguments.add_argument("--checkpoints", type=int, nargs="+", default=[2_000, 10_000])
    given = arguments.parse_args()
    for champion_set in (False, True):
        runs = Runs(given.runs, seed=1, champion_set=champion_set)
        regret = np.zeros(given.runs)
        for t in range(1, max(given.checkpoints) + 1):
            regret += runs.step(t)
            if t in given.checkpoints:
                mean, deviation = regret.mean(), regret.std(ddof=1)
                print(f"champion_set={champion_set} T={t}: {mean:.1f}, deviation {deviation:.1f}")


if __name__ == "__main__":
    main()
