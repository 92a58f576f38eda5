"""RMED1: Relative Minimum Empirical Divergence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.divergence import EmpiricalDivergence
from streamduel.preference.logarithm import ln
from streamduel.preference.power import power


class RMED1State(State):
    """The lists of the pass, and how far it is."""

    exploring: bool
    next_pair: Count
    waiting: list[Arm]
    joining: list[Arm]
    concluding: bool


class RMED1(Policy):
    """Finds the Condorcet winner with nearly the smallest possible regret; needs no horizon.

    The likelihood that arm i is the winner is exp(-I_i), where the empirical divergence I_i adds up
    the evidence of all duels in which i is behind (`EmpiricalDivergence`). The arm i* with the
    smallest I_i is the likeliest winner. Any other arm is drawn only while I_i - I_i* ≤ ln t +
    f(K): until a winner would have such duels with a probability below 1/t. Arms come in passes
    over a list; the arms that satisfy this during a pass are the list of the next. An arm l from
    the list duels with i* if i* may be ahead of it, else with the arm that is furthest ahead of it.
    i*, ahead of all, duels with itself, which has no regret; soon it is alone in the list.

    f(K) = 0.3 K^1.01 keeps the winner in the list through unlucky first duels; the bounds need an
    exponent above 1. The regret for finite T is O(K ln T) + O(K^(2+ε)).

    Where the paper leaves something open: the fixed order of the arms, and with it that of the
    first K (K - 1) / 2 duels, in which all pairs duel once, is drawn from the seed. t counts all
    duels from 1, those of an arm with itself too. Of several equally likely winners or equally
    strong opponents one is drawn at random. A mean over no duels is 1/2.

    Delayed outcomes and unproposed duels count like all others. At first a pair is due until its
    duel has been observed; pairs in flight are not proposed again. Then the list continues with the
    observed duels, and a pair whose outcome never came is due again before the next pass.

    Choose it where one ranker surely beats all others and a decision must take microseconds:
    `TopTwo` and Double Thompson Sampling have less regret in most simulations, at a higher cost of
    a step. With hundreds of arms, the first duels of all pairs are costly. Without a winner it
    never stops exploring, and may name a wrong champion.

    Draws from the generator, each only if there is more than one choice: i*; then the opponent, if
    it is not i*.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = RMED1(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 173)

    Source: Komiyama, Honda, Kashima and Nakagawa, "Regret Lower Bound and Optimal Algorithm in
    Dueling Bandit Problem", COLT 2015, Algorithms 1 and 2; after accounts of it, and the program of
    its first author.
    """

    name = "rmed1"
    summary = "draws the arms that the evidence has not ruled out; needs no horizon"
    paper = "Komiyama et al., Regret Lower Bound and Optimal Algorithm, COLT 2015 (RMED1)"

    state_type: ClassVar[type[State]] = RMED1State

    f_weight = Real(
        symbol="f(K) / K^1.01",
        default=0.3,
        at_least=0,
        meaning="evidence by which an arm may lag behind, besides ln t; larger explores more",
        reason="the paper requires f(K) ≥ 0",
    )

    def _begin(self) -> None:
        self._divergence = self._track(EmpiricalDivergence(self._counts))
        self._slack = self.f_weight * float(power(self.n_arms, Fraction(101, 100)))  # f(K)
        self._order = self._priority.argsort()
        self._pairs = self._order[np.stack(np.triu_indices(self.n_arms, k=1))]
        self._next_pair = 0
        self._explored = int(self._counts.plays[tuple(self._pairs)].min())  # or more
        self._in_flight: dict[tuple[int, int], int] = {}
        self._exploring = True
        self._concluding = False  # the last duel was of the list, and `_conclude` is due
        self._waiting: list[int] = []  # L_R, which is L_C without those drawn; the last is next
        self._joining = np.zeros(self.n_arms, dtype=np.bool_)  # L_N
        self._drawn = np.zeros(self.n_arms, dtype=np.bool_)  # all but L_R
        self._close = np.zeros(self.n_arms, dtype=np.bool_)
        self._lags = np.zeros(self.n_arms)  # I_i - I_i*, as of the present choice
        self._best = 0  # an i*
        self._wait(self._order)

    def _wait(self, arms: Integers) -> None:
        """Set L_C and L_R to these arms."""
        self._waiting = arms[::-1].tolist()
        self._drawn.fill(True)
        self._drawn[arms] = False

    def _choose(self, t: int) -> tuple[int, int]:
        sums = self._divergence.sums  # I_i(t)
        self._best = int(sums.argmin())
        np.subtract(sums, sums[self._best], self._lags)
        if self._concluding:
            self._conclude(max(t - 1, 1))
        if self._exploring:  # the initial phase, and for RMED2 what precedes a pass
            pair = self._due(self._needed(t))
            if pair is not None:
                return pair
            self._exploring = False
        self._concluding = True
        arm = self._waiting.pop()  # l(t), in L_C's fixed order
        self._drawn[arm] = True  # L_R ← L_R \ {l(t)}
        return arm, self._opponent(arm, t)

    def _conclude(self, t: int) -> None:
        """After the duel of step t: add arms to L_N; if L_C is empty, begin the next pass."""
        close = self._close
        np.less_equal(self._lags, ln(t) + self._slack, close)  # J_j(t): I_j - I* ≤ ln t + f(K)
        np.logical_and(close, self._drawn, close)  # j is not in L_R
        np.logical_or(close, self._joining, self._joining)  # L_N ← L_N ∪ {j}
        self._concluding = False
        if not self._waiting:
            self._wait(self._order[self._joining[self._order]])  # L_C, L_R ← L_N
            self._joining.fill(False)  # L_N ← ∅
            self._exploring = True

    def _needed(self, t: int) -> int:  # noqa: ARG002 - for RMED2
        """L: how often every pair must have duelled before the list continues."""
        return 1

    def _due(self, times: int) -> tuple[int, int] | None:
        """The next pair, in turn, that has duelled less often, duels in flight included."""
        if times <= self._explored:
            return None
        firsts, seconds = self._pairs
        wins, in_flight = self.wins, self._in_flight
        for _ in range(len(firsts)):
            first, second = firsts.item(self._next_pair), seconds.item(self._next_pair)
            self._next_pair = (self._next_pair + 1) % len(firsts)
            met = wins.item(first, second) + wins.item(second, first)
            if met + in_flight.get((first, second), 0) < times:
                return first, second
        if not in_flight:
            self._explored = times
        return None

    def _opponent(self, arm: int, t: int) -> int:  # noqa: ARG002 - for RMED2
        """m(t), by Algorithm 2."""
        return self._strongest_opponent(arm, self._likeliest())

    def _likeliest(self) -> int:
        """i*(t)."""
        if np.count_nonzero(self._lags) == self.n_arms - 1:
            return self._best
        return self._generator.choose_index(self._lags == 0)

    def _strongest_opponent(self, arm: int, likeliest: int) -> int:
        """Algorithm 2, given i*(t)."""
        wins = self.wins
        may_lose = likeliest != arm and wins.item(arm, likeliest) <= wins.item(likeliest, arm)
        if may_lose or self._counts.beats.item(arm) == self.n_arms - 1:  # i* in O, or O empty
            return likeliest
        means = self._means(arm)
        means[arm] = 2.0  # j ≠ l(t)
        return self._generator.choose_index(means == means[means.argmin()])

    def _means(self, arm: int) -> Floats:
        """μ_ij of an arm i and every arm j; 1/2 where there were no duels."""
        won = self.wins[arm]
        met = won + self.wins[:, arm]
        if self._explored:  # then all arms but the arm itself have been met
            met[arm] = 1.0
            means: Floats = won / met
            means[arm] = 0.5
        else:
            means = np.full(self.n_arms, 0.5)
            np.divide(won, met, out=means, where=met > 0)
        return means

    def _duels_alone(self, arm: int, t: int, limit: int) -> int:
        # The pass was of this arm alone, and so is the next one, until ln t has grown so much that
        # another arm joins, or RMED2 must explore. Both are monotone in t.
        if self._waiting or self._joining.any():
            return 1
        gaps = self._divergence.sums - self._divergence.sums[arm]
        gaps[arm] = np.inf
        smallest = gaps[gaps.argmin()]

        def last(step: int) -> bool:
            joins = bool(smallest <= ln(step) + self._slack)
            return joins or self._needed(step + 1) > self._explored

        return min(limit, bisect_left(range(t, t + limit), True, key=last) + 1)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """While pairs are due, outcomes do not matter."""
        due = self._lacking(self._needed(t)) if self._exploring else 0
        known = min(due, limit)
        if known < 2:
            return super()._choose_ahead(t, limit)
        return self.propose(known), np.ones(known, dtype=np.int64)

    def _lacking(self, times: int) -> int:
        """How many duels are missing until every pair has duelled this often."""
        if times <= self._explored:
            return 0
        met = self._counts.plays[tuple(self._pairs)]
        return int(np.maximum(times - met, 0.0).sum())

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        super()._mark_in_flight(first, second, in_flight)
        for pair in ((first, second), (second, first)):
            if in_flight:
                self._in_flight[pair] = in_flight
            else:
                self._in_flight.pop(pair, None)

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: by the evidence against the arm."""
        sums = self._divergence.sums
        arm, opponent = (first, second) if sums[first] >= sums[second] else (second, first)
        lag = sums.item(arm) - sums.min().item()
        bound = ln(self._counts.duels + 1) + self._slack
        return (
            f"{arms[arm]} is not ruled out: the evidence against it is {lag:.1f} nats more than "
            f"against the likeliest winner, where {bound:.1f} are allowed; {arms[opponent]} is "
            f"its opponent."
        )

    def candidates(self) -> int:
        """How many arms the evidence has not ruled out: I_i - I_i* ≤ ln t + f(K); at least 1."""
        sums = self._divergence.sums
        bound = ln(self._counts.duels + 1) + self._slack
        return int(np.count_nonzero(sums - sums[sums.argmin()] <= bound))

    def _restored(self) -> None:
        arms = [*self._waiting, *self._joining.nonzero()[0].tolist()]
        if (
            self._next_pair >= self._pairs.shape[1]
            or len(set(arms)) < len(arms)
            or not (self._waiting or self._concluding)
        ):
            raise PolicyError(f"the lists in a state of policy '{self.name}' are damaged.")
        self._wait(np.array(self._waiting[::-1], dtype=np.int64))
