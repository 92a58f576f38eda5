"""SCB: Scalable Copeland Bandits."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import pi
from typing import Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State, Wins
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.divergence import bernoulli
from streamduel.preference.logarithm import ln

_LENGTHS: Final = tuple(2**2**r for r in range(1, 7))
"""T_r: how many duels the epoch r = 1, 2, ... lasts; the last ends beyond all duels counted."""

_ENDS: Final = tuple(accumulate(_LENGTHS))
"""The last duel of each epoch, counting from 1."""

_HALVINGS: Final = 60
"""After this many halvings two numbers from 0 to 1 are equal."""


class SCBState(State):
    """The epoch, the wins before it, and its search."""

    epoch: Count
    before: Wins
    found: list[list[Arm]]
    left: list[Arm]
    scores: list[Count]
    round: Count
    opponents: list[tuple[Arm, Arm]]
    best: Arm | None


class SCB(Policy):
    """Finds a Copeland winner with O(K log K log T) regret: made for hundreds of arms.

    An arm's Copeland score is the mean of a coin: draw an opponent, and see whether the arm beats
    it. So K arms are a bandit with K coins, and the coin with the highest mean is wanted: in each
    round every remaining arm tosses its coin once, and an arm whose mean is surely below another's
    is eliminated. Few arms can have a high score, so few are left soon, and most pairs never duel.
    The price: a drawn pair is played until it is decided, however close and unimportant it is.

    Time is divided into epochs of T_r = 4, 16, 256, 65,536, 2^32, ... duels. Each starts without
    the results of the last, searches with failure probability δ = ln(T_r) / T_r, and plays the arm
    that it has found against itself until it ends.

    Where the paper leaves something open: epoch r is T_r duels long, so the epochs end with duels
    4, 20, 276, 65,812, ...; one that ends before its search has no result. A pair is decided
    once n d(p, 1/2) > ln(π² n² K² / (3 δ)) for its n duels and the share p of them won, an error of
    δ / K² over all n; it stays decided for the epoch. The search also stops when one arm is left,
    or when every pair with an arm that is left is decided: then that arm is found that beats the
    most others (at ε = 0 the printed condition never ends the loop). The arms of a round draw their
    opponents when it begins, and toss their coins in an order drawn for the epoch, since otherwise
    short epochs would favour arms with small numbers.

    Draws from the generator: that order, when an epoch begins; the opponents of the arms that are
    left, in that order, when a round begins; the arm found, if several beat equally many others.

    Unproposed duels of the epoch count like all others. Duels observed after the epoch in which
    they were proposed count in the next. An epoch begins when its first pair is asked for; epochs
    without a proposal are skipped. While duels are in flight, the pairs of the round are proposed
    in turn.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.8, 0.9], [0.2, 0.5, 0.8], [0.1, 0.2, 0.5]])
    >>> policy, users = SCB(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 565)

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015,
    Algorithms 2, 3 and 4; line numbers are those of Algorithm 4 in arXiv:1506.00312.
    """

    name = "scb"
    summary = "finds an arm that beats the most others by their estimated scores; for many arms"
    paper = "Zoghi et al., Copeland Dueling Bandits, NIPS 2015"
    seeks = "copeland"
    state_type = SCBState

    def _begin(self) -> None:
        self._in_flight: dict[tuple[int, int], int] = {}
        self._start_epoch(0, [])

    def _start_epoch(self, epoch: int, order: list[int]) -> None:
        """Discard the results of the last epoch; the epoch 0 ends before the first duel."""
        self._set_epoch(epoch)
        self._before = self._counts.wins.copy()
        # [i, j]: i was found to beat j in this epoch.
        self._found: Booleans = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        self._left = order  # B, in the order in which they toss their coins
        self._scores: Integers = np.zeros(self.n_arms, dtype=np.int64)  # S
        self._round = 0  # t of Algorithm 4: how many coins each arm that is left has tossed
        self._drawn: dict[int, int] = {}  # of the arms that have not tossed in this round
        self._tested = -1  # the number of duels after which all of these pairs were undecided
        self._best: int | None = None

    def _set_epoch(self, epoch: int) -> None:
        """Set what depends on the number of the epoch alone."""
        self._epoch = epoch
        self._end = _ENDS[epoch - 1] if epoch else 0
        # Of Algorithm 2's δ / K² = ln(T) / (T K²): ln(π² n² K² / (3 δ)) = ln(n² `limit`).
        length = _LENGTHS[epoch - 1] if epoch else 2
        self._failure = ln(length) / length  # δ
        self._limit = pi * pi / 3 * (self.n_arms * self.n_arms) / self._failure

    @property
    def _opponents(self) -> list[tuple[int, int]]:
        return list(self._drawn.items())

    @_opponents.setter
    def _opponents(self, pairs: list[tuple[int, int]]) -> None:
        self._drawn = dict(pairs)

    def _choose(self, t: int) -> tuple[int, int]:
        if t > self._end:  # Algorithm 3, lines 1 and 2
            epoch = next(r for r, end in enumerate(_ENDS, start=1) if t <= end)
            self._start_epoch(epoch, self._generator.permutation(self.n_arms))
        while self._best is None:
            pair = self._next_pair()
            if pair is not None:
                return pair
            if self._round:
                self._end_round()
            if self._best is None:
                self._begin_round()
        return self._best, self._best  # Algorithm 3, line 3

    def _begin_round(self) -> None:
        """Lines 3 and 9, first part: each arm that is left draws an opponent."""
        self._round += 1
        self._tested = -1
        for arm in self._left:
            opponent = self._generator.below(self.n_arms - 1)
            self._drawn[arm] = opponent + (opponent >= arm)

    def _next_pair(self) -> tuple[int, int] | None:
        """Lines 3 and 9, second part: take the rewards of decided pairs, find an undecided one.

        One pair is played until it is decided, then the next; while duels are in flight, the pairs
        take turns.
        """
        if not self._in_flight:
            while self._drawn:
                pair = next(iter(self._drawn.items()))
                if not self._toss(*pair):
                    return pair
            return None
        if self._tested != self._counts.duels:
            for pair in list(self._drawn.items()):
                self._toss(*pair)
            self._tested = self._counts.duels
        flying = self._in_flight
        pairs = self._drawn.items()
        return min(pairs, key=lambda pair: flying.get((min(pair), max(pair)), 0), default=None)

    def _toss(self, arm: int, opponent: int) -> bool:
        """Add the arm's reward for an opponent, if their pair is decided."""
        won, lost = self._found.item(arm, opponent), self._found.item(opponent, arm)
        if not won and not lost:
            if not self._decide(arm, opponent):
                return False
            won = self._found.item(arm, opponent)
        self._scores[arm] += won
        del self._drawn[arm]
        return True

    def _decide(self, first: int, second: int) -> bool:
        """Whether the duels of this epoch decide a pair; the result is noted."""
        won, lost = self._duels_of(first, second)
        if not self._suffice(max(won, lost), won + lost):
            return False
        self._found[(first, second) if won > lost else (second, first)] = True
        return True

    def _duels_of(self, first: int, second: int) -> tuple[float, float]:
        """How often the first arm has won and lost against the second in this epoch."""
        wins, before = self._counts.wins, self._before
        return (
            wins.item(first, second) - before.item(first, second),
            wins.item(second, first) - before.item(second, first),
        )

    def _suffice(self, won: float, played: float) -> bool:
        """Algorithm 2, line 1: whether the probability of a pair surely differs from 1/2."""
        if not played:
            return False
        return played * bernoulli(won / played, 0.5) > ln(played * played * self._limit)

    def _end_round(self) -> None:
        """Lines 10 to 13, and whether the search is over."""
        if self._round > 1:
            self._eliminate()
        decided = (self._found | self._found.T)[self._left].sum(axis=1)
        if len(self._left) == 1:
            self._best = self._left[0]
        elif (decided == self.n_arms - 1).all():
            beaten = self._found[self._left].sum(axis=1)
            self._best = self._left[self._generator.choose_index(beaten == beaten.max())]

    def _eliminate(self) -> None:
        """Lines 10 and 11: drop the arms whose interval is below another's.

        The ends of the intervals grow with the score, so the highest score has the highest lower
        end, and while the lowest score is not below that, no other is.
        """
        tosses = self._round
        chance = ln(4 * tosses * self.n_arms / self._failure) + 2 * ln(ln(tosses))
        scores = [self._scores.item(arm) for arm in self._left]
        highest = max(scores) / tosses
        below = {}
        for score in sorted(set(scores)):
            below[score] = _is_apart(score / tosses, highest, chance / tosses)
            if not below[score]:
                break
        self._left = [
            arm for arm, score in zip(self._left, scores, strict=True) if not below.get(score)
        ]

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """One arm alone until the end of the epoch; or one pair until it can be decided."""
        first, second = self._choose(t)
        room = min(limit, self._end - t + 1)
        if first == second:
            return np.array([[first, second]], dtype=np.int64), np.array([room], dtype=np.int64)
        times = self._duels_to_decide(first, second, room)
        pairs = np.full((times, 2), (first, second), dtype=np.int64)
        return pairs, np.ones(times, dtype=np.int64)

    def _duels_to_decide(self, first: int, second: int, limit: int) -> int:
        """How many duels decide a pair if the leader wins them all, up to `limit`.

        Other outcomes give less evidence. Each further win of the leader adds more evidence than
        the one before, and raises the threshold by less: once it is enough, it stays enough.
        """
        won, lost = self._duels_of(first, second)
        won, played = max(won, lost), won + lost
        return 1 + bisect_left(
            range(1, limit), True, key=lambda more: self._suffice(won + more, played + more)
        )

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        pair = (first, second) if first < second else (second, first)
        if in_flight:
            self._in_flight[pair] = in_flight
        else:
            self._in_flight.pop(pair, None)

    def candidates(self) -> int:
        """How many arms the epoch has left: all before the first, one after its search."""
        if self._best is not None:
            return 1
        return len(self._left) if self._epoch else self.n_arms

    def _restored(self) -> None:
        if self._epoch > len(_ENDS) or bool(self._left) != bool(self._epoch):
            raise PolicyError("an epoch must be one that there is, and have arms left.")
        if len(set(self._left)) < len(self._left) or not set(self._drawn) <= set(self._left):
            raise PolicyError("left must hold different arms, among them those with opponents.")
        if any(arm == opponent for arm, opponent in self._drawn.items()):
            raise PolicyError("an arm must not be its own opponent.")
        if (self._found & self._found.T).any() or self._found.diagonal().any():
            raise PolicyError("found must not hold of two arms that each beats the other.")
        if (self._before > self._counts.wins).any() or (self._scores > self._round).any():
            raise PolicyError("the wins before an epoch and the scores of a round are too large.")
        self._set_epoch(self._epoch)


def _is_apart(low: float, high: float, limit: float) -> bool:
    """Whether all q with d(low, q) ≤ limit are below all q with d(high, q) ≤ limit.

    They are if, and only if, a number between is far enough from both.
    """
    if low >= high:
        return False
    nearer, farther = low, high
    for _ in range(_HALVINGS):
        middle = (nearer + farther) / 2
        off_low, off_high = bernoulli(low, middle) > limit, bernoulli(high, middle) > limit
        if off_low == off_high:
            return off_low
        nearer, farther = (nearer, middle) if off_low else (middle, farther)
    return False
