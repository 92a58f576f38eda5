"""Textbook simulations in plain numpy, which compute K x K matrices at every step.

Each is a whole simulation, including the draws of the environment. They share no code with
streamduel, and use numpy's generator and no shortcuts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


class Textbook(ABC):
    """One run.

    Args:
        preferences: (K, K), [i, j] the probability that i beats j.
        wins: (K, K) at the start.
        t: duels so far.
    """

    def __init__(self, preferences: Floats, wins: Floats, t: int) -> None:
        self.preferences = preferences
        self.n_arms = len(preferences)
        self.wins = wins.copy()
        self.t = t
        self.random = np.random.default_rng(1)

    def run(self, steps: int) -> None:
        """Simulate further duels."""
        for _ in range(steps):
            first, second = self.choose()
            if first != second:
                if self.random.random() < self.preferences[first, second]:
                    self.wins[first, second] += 1
                else:
                    self.wins[second, first] += 1
            self.t += 1

    @abstractmethod
    def choose(self) -> tuple[int, int]:
        """The pair of the next duel."""

    def one_of(self, arms: npt.NDArray[np.intp]) -> int:
        """One of these, at random."""
        return int(arms[self.random.integers(len(arms))])

    def upper_bounds(self, alpha: float = 0.51) -> Floats:
        """U of RUCB and CCB, with x/0 := 1."""
        played = self.wins + self.wins.T
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = self.wins / played + np.sqrt(alpha * np.log(self.t + 1) / played)
        upper: Floats = np.where(played > 0, bounds, 2.0)
        np.fill_diagonal(upper, 0.5)
        return upper


class RUCB(Textbook):
    """Zoghi et al., ICML 2014, Algorithm 1."""

    def choose(self) -> tuple[int, int]:
        upper = self.upper_bounds()
        candidates = np.flatnonzero((upper >= 0.5).all(axis=1))
        c = self.one_of(candidates if len(candidates) else np.arange(self.n_arms))
        best = np.flatnonzero(upper[:, c] == upper[:, c].max())
        if len(best) > 1:
            best = best[best != c]
        return c, self.one_of(best)


class CCB(Textbook):
    """Zoghi et al., NIPS 2015, Algorithm 1."""

    def __init__(self, preferences: Floats, wins: Floats, t: int) -> None:
        super().__init__(preferences, wins, t)
        self.reset()

    def reset(self) -> None:
        """Lines 2 to 4."""
        self.best = np.ones(self.n_arms, dtype=bool)
        self.shortlists = np.zeros((self.n_arms, self.n_arms), dtype=bool)
        self.losses = self.n_arms

    def choose(self) -> tuple[int, int]:
        upper = self.upper_bounds()  # line 6
        lower = 1 - upper.T
        np.fill_diagonal(upper, 0.0)  # an arm is no opponent of its own in lines 7 to 9
        may_beat = (upper >= 0.5).sum(axis=1)  # line 7
        surely_beats = (lower > 0.5).sum(axis=1)
        np.fill_diagonal(upper, 0.5)
        winners = np.flatnonzero(may_beat == may_beat.max())  # line 8
        self.update(upper, lower, may_beat, surely_beats, winners)
        is_open = (lower <= 0.5) & (upper >= 0.5)
        np.fill_diagonal(is_open, val=False)
        if self.random.random() < 0.25:  # line 10
            pairs = np.argwhere(self.shortlists & is_open)
            if len(pairs):
                first, second = pairs[self.random.integers(len(pairs))]
                return int(first), int(second)
        preferred = winners[self.best[winners]]
        if len(preferred) and self.random.random() < 2 / 3:  # line 11
            winners = preferred
        return self.champion_and_challenger(self.one_of(winners), upper, lower)

    def champion_and_challenger(self, c: int, upper: Floats, lower: Floats) -> tuple[int, int]:
        """Line 13."""
        among = lower[:, c] <= 0.5
        if self.random.random() < 0.5:
            listed = among & self.shortlists[c]
            among = listed if listed.any() else among
        bounds = np.where(among, upper[:, c], -1.0)
        best = np.flatnonzero(bounds == bounds.max())
        if len(best) > 1:
            best = best[best != c]
        return c, self.one_of(best)

    def update(
        self,
        upper: Floats,
        lower: Floats,
        may_beat: npt.NDArray[np.int64],
        surely_beats: npt.NDArray[np.int64],
        winners: npt.NDArray[np.intp],
    ) -> None:
        """Line 9."""
        if (self.shortlists & (lower > 0.5)).any():  # A
            self.reset()
        for arm in np.flatnonzero(self.best & (may_beat < surely_beats.max())):  # B
            self.best[arm] = False
            if self.shortlists[arm].sum() != self.losses + 1:
                self.shortlists[arm] = upper[arm] < 0.5
        if not self.best.any():
            self.reset()
        for winner in winners[may_beat[winners] == surely_beats[winners]]:  # C
            self.best[winner] = True
            self.shortlists[winner] = False
            self.losses = self.n_arms - 1 - int(may_beat[winner])
            sizes = self.shortlists.sum(axis=1)
            self.shortlists[sizes < self.losses + 1] = False
            for arm in np.flatnonzero(sizes > self.losses + 1):
                listed = np.flatnonzero(self.shortlists[arm])
                kept = self.random.choice(listed, self.losses + 1, replace=False)
                self.shortlists[arm] = False
                self.shortlists[arm, kept] = True


class RMED1(Textbook):
    """Komiyama et al., COLT 2015, Algorithms 1 and 2."""

    def __init__(self, preferences: Floats, wins: Floats, t: int) -> None:
        super().__init__(preferences, wins, t)
        self.slack = 0.3 * self.n_arms**1.01
        self.unseen = list(zip(*np.nonzero(np.triu(wins + wins.T == 0, k=1)), strict=True))
        self.current = set(range(self.n_arms))  # L_C, of which `remaining` is L_R
        self.remaining = sorted(self.current)
        self.coming: set[int] = set()  # L_N
        self.in_list = False

    def choose(self) -> tuple[int, int]:
        played = self.wins + self.wins.T
        means = np.where(played > 0, self.wins / np.maximum(played, 1), 0.5)
        divergences = self.divergences(played, means)
        if self.in_list:
            self.conclude(divergences)
        if self.unseen:
            first, second = self.unseen.pop()
            return int(first), int(second)
        self.in_list = True
        arm = self.remaining.pop(0)
        likeliest = self.one_of(np.flatnonzero(divergences == divergences.min()))
        behind = means[arm] <= 0.5
        behind[arm] = False
        if behind[likeliest] or not behind.any():
            return arm, likeliest
        means[arm, arm] = 2.0
        return arm, self.one_of(np.flatnonzero(means[arm] == means[arm].min()))

    def divergences(self, played: Floats, means: Floats) -> Floats:
        """I_i of every arm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            won = np.where(means > 0, means * np.log(2 * means), 0.0)
            lost = np.where(means < 1, (1 - means) * np.log(2 * (1 - means)), 0.0)
        terms = np.where(means <= 0.5, played * (won + lost), 0.0)
        np.fill_diagonal(terms, 0.0)
        sums: Floats = terms.sum(axis=1)
        return sums

    def conclude(self, divergences: Floats) -> None:
        """Update the list of the next pass, and begin it at the end of this one."""
        close = divergences - divergences.min() <= np.log(max(self.t, 1)) + self.slack
        self.coming |= {int(arm) for arm in np.flatnonzero(close)} - set(self.remaining)
        if not self.remaining:
            self.current, self.coming = self.coming, set()
            self.remaining = sorted(self.current)
        self.in_list = False


LOOPS: dict[str, type[Textbook]] = {"rucb": RUCB, "ccb": CCB, "rmed1": RMED1}
