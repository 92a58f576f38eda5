"""SCB: Scalable Copeland Bandits."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import pi
from typing import Any, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Integers
from streamduel.preference.divergence import bernoulli
from streamduel.preference.logarithm import ln

_LENGTHS: Final = tuple(2**2**r for r in range(1, 7))
"""T_r: how many duels the epoch r = 1, 2, ... lasts; the last ends beyond all duels counted."""

_ENDS: Final = tuple(accumulate(_LENGTHS))
"""The last duel of each epoch, counting from 1."""

_HALVINGS: Final = 60
"""Until then two numbers from 0 to 1 have met."""


class SCB(Policy):
    """Finds a Copeland winner with O(K log K log T) regret: made for hundreds of arms.

    An arm's Copeland score is the mean of a coin: draw an opponent, and see whether the arm beats
    it. So K arms are a bandit with K coins, of which the one with the highest mean is sought: in
    each round every remaining arm tosses its coin once, and an arm whose mean is surely below
    another's is eliminated. Few arms can have a high score, so few are left soon, and most pairs
    need never meet. The price: a pair that is drawn is played until it is decided, however close
    it is and however little depends on it.

    Time is cut into epochs of T_r = 4, 16, 256, 65,536, 2^32, ... duels, one after the other. Each
    starts afresh, searches with failure probability δ = ln(T_r) / T_r, and plays the arm it has
    found against itself until the epoch is over.

    Where the paper leaves something open: epoch r is T_r duels long, so the epochs end with duels
    4, 20, 276, 65,812, ...; one that ends before its search hands on nothing. A pair is decided
    once n d(p, 1/2) > ln(π² n² K² / (3 δ)) for its n duels and the share p of them won, an error of
    δ / K² over all n; it stays decided for the epoch. The search also stops when one arm is left,
    or when every pair with an arm that is left is decided: then that arm is found that beats the
    most others (at ε = 0 the printed condition never ends the loop). The arms of a round draw their
    opponents when it begins, and toss their coins in an order drawn for the epoch, lest short
    epochs favour arms by their numbers.

    Draws from the generator: that order, when an epoch begins; the opponents of the arms that are
    left, in that order, when a round begins; the arm found, if several beat equally many others.

    Duels of pairs that were not asked for count from the beginning of the epoch like all others.
    Duels that arrive after the epoch in which they were asked for count in the next. An epoch
    begins when its first pair is asked for; if time has passed over whole epochs, they are left
    out. While duels are in flight, the pairs of the round are proposed in turn.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.

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

    def _begin(self) -> None:
        self._in_flight: dict[tuple[int, int], int] = {}
        self._start_epoch(0, [])

    def _start_epoch(self, epoch: int, order: list[int]) -> None:
        """Forget what the last epoch has found; the epoch 0 is over before it begins."""
        self._epoch = epoch
        self._end = _ENDS[epoch - 1] if epoch else 0
        self._before = self._counts.wins.copy()
        # [i, j]: 1 if i is found to beat j, -1 if to lose, 0 while that is open.
        self._found: Integers = np.zeros((self.n_arms, self.n_arms), dtype=np.int64)
        self._left = order  # B, in the order in which they toss their coins
        self._scores: Integers = np.zeros(self.n_arms, dtype=np.int64)  # S
        self._round = 0  # t of Algorithm 4; how many coins each arm that is left has tossed
        self._opponents: dict[int, int] = {}  # of the arms that have yet to toss in this round
        self._tested = -1  # as of how many duels all of these pairs are known to be open
        self._best: int | None = None
        # Of Algorithm 2's δ / K² = ln(T) / (T K²): ln(π² n² K² / (3 δ)) = ln(n² `limit`).
        length = _LENGTHS[epoch - 1] if epoch else 2
        self._failure = ln(length) / length  # δ
        self._limit = pi * pi / 3 * (self.n_arms * self.n_arms) / self._failure

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
            self._opponents[arm] = opponent + (opponent >= arm)

    def _next_pair(self) -> tuple[int, int] | None:
        """Lines 3 and 9, second part: take the rewards of decided pairs, find one that is open.

        One pair is played until it is decided, then the next; while duels fly, the pairs take
        turns.
        """
        if not self._in_flight:
            while self._opponents:
                pair = next(iter(self._opponents.items()))
                if not self._toss(*pair):
                    return pair
            return None
        if self._tested != self._counts.duels:
            for pair in list(self._opponents.items()):
                self._toss(*pair)
            self._tested = self._counts.duels
        flying = self._in_flight
        pairs = self._opponents.items()
        return min(pairs, key=lambda pair: flying.get((min(pair), max(pair)), 0), default=None)

    def _toss(self, arm: int, opponent: int) -> bool:
        """Add the arm's reward for an opponent, if their pair is decided."""
        if not self._found.item(arm, opponent) and not self._decide(arm, opponent):
            return False
        self._scores[arm] += self._found.item(arm, opponent) > 0
        del self._opponents[arm]
        return True

    def _decide(self, first: int, second: int) -> bool:
        """Whether the duels of this epoch decide a pair; note it if they do."""
        won, lost = self._duels_of(first, second)
        if not self._suffice(max(won, lost), won + lost):
            return False
        self._found[first, second] = 1 if won > lost else -1
        self._found[second, first] = -1 if won > lost else 1
        return True

    def _duels_of(self, first: int, second: int) -> tuple[float, float]:
        """How often the first arm has won and lost against the second in this epoch."""
        wins, before = self._counts.wins, self._before
        return (
            wins.item(first, second) - before.item(first, second),
            wins.item(second, first) - before.item(second, first),
        )

    def _suffice(self, won: float, played: float) -> bool:
        """Algorithm 2, line 1: whether the odds of a pair are surely not even."""
        if not played:
            return False
        return played * bernoulli(won / played, 0.5) > ln(played * played * self._limit)

    def _end_round(self) -> None:
        """Lines 10 to 13, and whether the search is over."""
        if self._round > 1:
            self._eliminate()
        others = np.abs(self._found[self._left]).sum(axis=1)
        if len(self._left) == 1:
            self._best = self._left[0]
        elif (others == self.n_arms - 1).all():
            beaten = (self._found[self._left] > 0).sum(axis=1)
            best = (beaten == beaten.max()).nonzero()[0].tolist()
            self._best = self._left[best[self._generator.below(len(best))]]

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

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        """Until the end of the epoch, one arm alone; or one pair until it can be decided at all."""
        first, second = self._choose(t)
        room = min(most, self._end - t + 1)
        if first == second:
            return np.array([[first, second]], dtype=np.int64), np.array([room], dtype=np.int64)
        times = self._least_to_decide(first, second, room)
        pairs = np.full((times, 2), (first, second), dtype=np.int64)
        return pairs, np.ones(times, dtype=np.int64)

    def _least_to_decide(self, first: int, second: int, most: int) -> int:
        """How many more duels an open pair needs, at most `most`, if the leader wins them all.

        Any other outcomes give less evidence. Each further win of the leader adds more evidence
        than the one before, and raises the limit by less: once it is enough, it stays enough.
        """
        won, lost = self._duels_of(first, second)
        won, played = max(won, lost), won + lost
        few, many = 0, 1
        while many < most and not self._suffice(won + many, played + many):
            few, many = many, 2 * many
        many = min(many, most)
        while many - few > 1:
            middle = (few + many) // 2
            if self._suffice(won + middle, played + middle):
                many = middle
            else:
                few = middle
        return many

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        pair = (first, second) if first < second else (second, first)
        if in_flight:
            self._in_flight[pair] = in_flight
        else:
            self._in_flight.pop(pair, None)

    def candidates(self) -> int:
        """How many arms the epoch has left: all before the first, one when it has found its arm."""
        if self._best is not None:
            return 1
        return len(self._left) if self._epoch else self.n_arms

    def _own_state(self) -> dict[str, Any]:
        return {
            "epoch": self._epoch,
            "before": self._before.tolist(),
            "found": self._found.tolist(),
            "left": list(self._left),
            "scores": self._scores.tolist(),
            "round": self._round,
            "opponents": [list(pair) for pair in self._opponents.items()],
            "best": self._best,
        }

    def _restore(self, own: Mapping[str, Any]) -> None:
        epoch, left, best, wins = own["epoch"], own["left"], own["best"], self._counts.wins
        if type(epoch) is not int or not 0 <= epoch <= len(_ENDS):
            raise PolicyError(f"an epoch must be from 0 to {len(_ENDS)} (found {epoch!r}).")
        if not self._are_arms(left) or len(set(left)) < len(left) or bool(left) != bool(epoch):
            raise PolicyError(f"an epoch must have some different arms left (found {left!r}).")
        if best is not None and not self._are_arms([best]):
            raise PolicyError(f"the arm found must be an arm (found {best!r}).")
        self._start_epoch(epoch, list(left))
        self._best = best
        self._round = _whole(own["round"], (), 0, 2**62).item()
        self._scores = _whole(own["scores"], (self.n_arms,), 0, self._round)
        self._found = _whole(own["found"], (self.n_arms, self.n_arms), -1, 1)
        if (self._found != -self._found.T).any():
            raise PolicyError("of two arms, one is found to beat the other, or neither.")
        self._before = np.array(own["before"], dtype=np.float64)
        within = self._before.shape == wins.shape and (self._before >= 0) & (self._before <= wins)
        if not np.all(within):
            raise PolicyError("the wins before an epoch must be K lists of K, none above the wins.")
        for arm, opponent in own["opponents"]:
            if not self._are_arms([arm, opponent]) or arm not in left or arm == opponent:
                raise PolicyError(f"{arm!r} cannot have drawn {opponent!r} for an opponent.")
            self._opponents[arm] = opponent

    def _are_arms(self, arms: object) -> bool:
        """Whether this is a list of arms."""
        return isinstance(arms, list) and all(
            type(arm) is int and 0 <= arm < self.n_arms for arm in arms
        )


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


def _whole(value: object, shape: tuple[int, ...], low: int, high: int) -> Integers:
    """Integers of a state, of this shape and range."""
    array = np.array(value)
    if array.shape != shape or array.dtype.kind != "i" or (array < low).any():
        raise PolicyError(f"a state of policy 'scb' must hold {shape} integers from {low}.")
    if (array > high).any():
        raise PolicyError(f"a state of policy 'scb' must hold integers up to {high}.")
    return array.astype(np.int64)
