"""Beat the Mean: every arm against random others; the worst arm is eliminated."""

from __future__ import annotations

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.parameter import Flag, Horizon, Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, State, Wins
from streamduel.preference.arrays import Floats
from streamduel.preference.logarithm import ln


class BeatTheMeanState(State):
    """Algorithm 1's W; the opponents last asked for by each arm; wins and duels in turns."""

    working: list[Arm]
    asked_by: list[list[Arm]]
    won: Wins
    played: Wins


class BeatTheMean(Policy):
    """Finds the best arm even if the arms are only roughly ordered; needs T, with much regret.

    The arms take turns; the arm in turn duels with a random other one, so that its share of wins is
    its probability to beat the mean of the arms left. When the best and the worst share differ by
    more than both confidence radii, the worst arm is eliminated, and the duels in which it was the
    opponent are removed from the shares of the others. The last arm is then served alone.

    Where the paper leaves something open: the opponent is another arm, since a duel of an arm with
    itself has no winner; before any duel the radius is 1 and the share 1/2; of several worst arms
    a random one is eliminated. Arms are eliminated when the next pair is asked for.

    A duel counts only for the arm in turn. Outcomes may name the two arms in any order, and be
    delayed: a pair belongs to the arm in whose turn it was last proposed. Unproposed duels are in
    the counts only.

    Of all policies here, this one explores the longest. It is included for comparison.

    Draws from the generator: the arm in turn among those with equally few duels, its opponent, and
    the worst arm among equals.

    Args:
        gamma: γ, at least 1: how far the arms may be from strong transitivity; 1 is not at all.
        tight: the radius after n duels is γ² sqrt(ln(1/δ) / n) with δ = 1/(2TK), a third of the
            paper's, as in its authors' experiments and in other implementations.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.8, 0.9], [0.2, 0.5, 0.7], [0.1, 0.3, 0.5]])
    >>> policy = BeatTheMean(3, seed=7, horizon=3000, gamma=1, tight=True)
    >>> users = np.random.RandomState(7)
    >>> for _ in range(3000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 394)

    Source: Yue and Joachims, "Beat the Mean Bandit", ICML 2011, Algorithms 1 and 2.
    """

    name = "beat_the_mean"
    summary = "eliminates the worst against random others in turn; explores first, then exploits"
    paper = "Yue and Joachims, Beat the Mean Bandit, ICML 2011"

    state_type = BeatTheMeanState

    horizon = Horizon()
    gamma = Real(
        symbol="γ",
        default=1.3,
        at_least=1,
        meaning="how far the arms may be from a strong order; 1 is not at all",
    )
    tight = Flag(
        symbol="c",
        default=False,
        meaning="a third of the paper's confidence radius, as in other implementations",
    )

    def _begin(self) -> None:
        # Algorithm 2: δ = 1/(2TK). The squared factor of 1/n in the squared radius.
        factor = (1 if self.tight else 3) * self.gamma * self.gamma
        self.width = factor * factor * ln(2 * self.horizon * self.n_arms)
        shape = (self.n_arms, self.n_arms)
        self._working = np.ones(self.n_arms, dtype=bool)  # Algorithm 1: W
        # [b, j]: the pair was last proposed in b's turn.
        self._asked_by = np.zeros(shape, dtype=bool)
        self._won: Floats = np.zeros(shape)
        self._played: Floats = np.zeros(shape)
        self._sum_up()

    def _sum_up(self) -> None:
        """w_b and n_b: wins and duels of each arm in its turn, against the arms that are left."""
        self._wins_in_turn = self._won[:, self._working].sum(axis=1)
        self._duels_in_turn = self._played[:, self._working].sum(axis=1)
        self._in_flight: Floats = np.zeros(self.n_arms)

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - confidence depends on T alone
        self._eliminate()
        working = self._working.nonzero()[0]
        if len(working) == 1:
            return working.item(0), working.item(0)
        duels = self._duels_in_turn[working] + self._in_flight[working]
        # The arm in turn: smallest n_b.
        place = self._generator.choose_index(duels == duels[duels.argmin()])
        other = self._generator.below(len(working) - 1)
        other += other >= place
        arm, opponent = working.item(place), working.item(other)
        self._asked_by[arm, opponent], self._asked_by[opponent, arm] = True, False
        return arm, opponent

    def _eliminate(self) -> None:
        """Eliminate the worst arm while it and the best differ by both of their radii."""
        while True:
            working = self._working.nonzero()[0]
            duels = self._duels_in_turn[working]
            fewest = duels.item(duels.argmin())
            if len(working) == 1 or fewest == 0:
                return
            shares = self._wins_in_turn[working] / duels
            worst = shares.item(shares.argmin())
            difference = shares.item(shares.argmax()) - worst
            # difference < 2 sqrt(width / fewest)
            if difference * difference * fewest < 4 * self.width:
                return
            self._working[working[self._generator.choose_index(shares == worst)]] = False
            self._sum_up()

    def _winner(self) -> int | None:
        return int(self._working.argmax()) if self._working.sum() == 1 else None

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        if in_flight:
            self._in_flight[first] += 1
        else:
            self._in_flight[[first, second]] = 0

    def _learned(self, first: int, second: int, first_wins: float, count: int) -> None:
        if self._asked_by.item(first, second):
            self._count_turn(first, second, first_wins * count, count)
        elif self._asked_by.item(second, first):
            self._count_turn(second, first, (1 - first_wins) * count, count)

    def _count_turn(self, arm: int, opponent: int, wins: float, duels: int) -> None:
        self._won[arm, opponent] += wins
        self._played[arm, opponent] += duels
        if self._working.item(opponent):
            self._wins_in_turn[arm] += wins
            self._duels_in_turn[arm] += duels

    def _learned_many(self, duels: Duels) -> None:
        count = np.ones(len(duels.first), dtype=np.int64) if duels.count is None else duels.count
        for arm, opponent, wins in (
            (duels.first, duels.second, duels.first_wins),
            (duels.second, duels.first, 1 - duels.first_wins),
        ):
            turn = self._asked_by[arm, opponent]
            np.add.at(self._won, (arm[turn], opponent[turn]), (wins * count)[turn])
            np.add.at(self._played, (arm[turn], opponent[turn]), count[turn])
        self._sum_up()

    def candidates(self) -> int:
        """How many arms are left, as of the last proposal."""
        return int(self._working.sum())

    def _restored(self) -> None:
        fits = (
            self._working.any()
            and (self._won <= self._played).all()
            and (self._played <= self._counts.plays).all()
        )
        if not fits:
            raise PolicyError(f"a state of policy '{self.name}' does not fit its counts.")
        self._sum_up()
