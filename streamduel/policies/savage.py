"""SAVAGE: Sensitivity Analysis of VAriables for Generic Exploration, for two kinds of winners."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.least_played import LeastPlayed
from streamduel.policies.base.parameter import Horizon
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.intervals import duels_until_sure, is_sure, surely_beats
from streamduel.preference.logarithm import ln


class _Savage(Policy):
    """Algorithm 1, the horizon being known: compare what matters, then serve who has won.

    A subclass says what follows when it is known which arm of a pair is better (`_settle`), and
    who is the winner once no pair is open (`_winner`).
    """

    horizon = Horizon()

    def _begin(self) -> None:
        # ln(2 N T / δ), N = K (K - 1) / 2, δ = 1 / T; as a sum, since the product is large.
        self._width = ln(self.n_arms * (self.n_arms - 1)) + 2 * ln(self.horizon)
        self._turns = LeastPlayed(self._counts, self._generator)
        # Pairs with duels from which nothing has been concluded yet; None: perhaps all.
        self._news: set[tuple[int, int]] | None = None

    @abstractmethod
    def _settle(self, beats: Booleans) -> None:
        """Conclude from open pairs: [i, j] says that i surely beats j, and some arm does."""

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - radii depend on T alone
        arm = self._conclude()
        return self._turns.next() if arm is None else (arm, arm)

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        """Pass after pass, up to the first duel that could settle a pair."""
        if t > self.horizon or self._conclude() is not None:
            return super()._foresee(t, most)
        fewest = duels_until_sure(self.wins, self._width)
        pairs = self._turns.foresee(fewest, min(most, self.horizon - t + 1))
        return pairs, np.ones(len(pairs), dtype=np.int64)

    def _conclude(self) -> int | None:
        """Settle what the duels seen since the last time have decided; returns the winner."""
        if self._news is None or any(self._decided(*pair) for pair in self._news):
            beats = surely_beats(self.wins, self._width) & self._turns.pairs
            if beats.any():
                self._settle(beats)
        self._news = set()
        return self._winner()

    def _decided(self, first: int, second: int) -> bool:
        wins = self.wins
        return is_sure(wins.item(first, second), wins.item(second, first), self._width)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._turns.mark_in_flight(first, second, in_flight)

    def _take_up(self, first: int, second: int) -> None:
        if self._news is not None:
            self._news.add((first, second))

    def _take_up_many(self, first: Integers, second: Integers) -> None:  # noqa: ARG002
        self._news = None

    def _own_state(self) -> dict[str, Any]:
        return self._turns.state_dict()

    def _restore(self, own: Mapping[str, Any]) -> None:
        self._turns.restore(own)


class CondorcetSavage(_Savage):
    """Finds the Condorcet winner with probability 1 - 1/T, then serves it alone; needs T.

    The pair that has been compared least is compared next. An arm is out as soon as it surely
    loses to one other, p̂ + c(n) < 1/2 with c(n) = sqrt(ln(K (K - 1) T / δ) / 2n), δ = 1/T, and
    with it go all of its pairs. It assumes nothing but that there is a winner, and pays for it: all
    pairs are explored evenly, O(K² ln(KT)) duels. RUCB gathers a fraction of its regret, and need
    not be told T; SAVAGE is the yardstick.

    Where the paper leaves something open: "least compared" is among the pairs of two arms that are
    in, ties uniformly at random; pairs are examined when the next one is asked for, after each
    duel if fed one by one. An arm that is out stays out. Fed many duels at once it may find that
    every arm loses to another, as in a cycle: then the one of them that beats the most arms stays.

    All duels count, late and unasked ones too; outcomes of a pair with an arm that is out change
    nothing but the counts. Duels in flight make a pair more played.

    Draws from the generator: at the beginning of a pass through the least compared pairs, one word
    for each of them if there are several.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        horizon: T, at least K.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy = CondorcetSavage(n_arms=3, seed=7, horizon=1000)
    >>> users = np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 377)

    Source: Urvoy, Clérot, Féraud and Naamane, "Generic Exploration and K-armed Voting Bandits",
    ICML 2013, Algorithm 1 with its test for Condorcet winners; after accounts of it by others.
    """

    name = "condorcet_savage"
    summary = "compares all pairs evenly until every arm but one has surely lost; then serves that"
    paper = "Urvoy et al., Generic Exploration and K-armed Voting Bandits, ICML 2013"

    def _begin(self) -> None:
        super()._begin()
        self._active: Booleans = np.ones(self.n_arms, dtype=np.bool_)
        self._last: int | None = None

    def _settle(self, beats: Booleans) -> None:
        remaining = self._active & ~np.logical_or.reduce(beats, axis=0)
        if not remaining.any():
            rank = self._counts.beats * self.n_arms + self._standing
            remaining[np.where(self._active, rank, -1).argmax()] = True
        self._keep(remaining)

    def _keep(self, remaining: Booleans) -> None:
        self._active = remaining
        self._turns.keep(np.logical_and.outer(remaining, remaining))
        arms = remaining.nonzero()[0]
        self._last = arms.item() if len(arms) == 1 else None

    def _winner(self) -> int | None:
        return self._last

    def candidates(self) -> int:
        """How many arms have not surely lost to another, as far as has been concluded."""
        return int(self._active.sum())

    def _own_state(self) -> dict[str, Any]:
        return {**super()._own_state(), "active": self._active.nonzero()[0].tolist()}

    def _restore(self, own: Mapping[str, Any]) -> None:
        super()._restore(own)
        active = own["active"]
        arms = [arm for arm in range(self.n_arms) if arm in active]
        if not arms or active != arms or any(type(arm) is not int for arm in active):
            raise PolicyError(f"active must be a list of arms, ascending (found {active!r}).")
        remaining = np.zeros(self.n_arms, dtype=np.bool_)
        remaining[active] = True
        self._keep(remaining)


class CopelandSavage(_Savage):
    """Finds an arm that beats the most others with probability 1 - 1/T, then serves it alone.

    Like Condorcet SAVAGE, but it needs no arm that beats all others, and so cannot drop an arm for
    a single loss. A pair is settled when one of its arms surely beats the other. Then an arm beats
    at least as many as it surely beats, and at most all but those that surely beat it. A pair is
    compared no more once it is settled, or neither of its arms can beat more than some arm does
    for certain. With no pair left, the arm that surely beats the most is served, a tie being drawn
    once. The exploration costs O(K² ln(KT)) duels; CCB and SCB explore less.

    Where the paper leaves something open: an arm that can at best draw level with the most certain
    one is not explored further ("more", not "as many"), as being served it would not lower the
    regret. A settled pair stays settled whatever comes later. For all else, bounds, order, late
    duels and draws, see `CondorcetSavage`.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        horizon: T, at least K.

    >>> import numpy as np
    >>> cycle = np.array([[0.5, 0.8, 0.2, 0.8], [0.2, 0.5, 0.8, 0.8], [0.8, 0.2, 0.5, 0.2],
    ...                   [0.2, 0.2, 0.8, 0.5]])
    >>> policy, users = CopelandSavage(n_arms=4, seed=7, horizon=2000), np.random.RandomState(7)
    >>> for _ in range(2000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < cycle[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 623)

    Source: Urvoy, Clérot, Féraud and Naamane, "Generic Exploration and K-armed Voting Bandits",
    ICML 2013, Algorithm 1 with its test for Copeland winners; after accounts of it by others.
    """

    name = "copeland_savage"
    summary = "compares pairs evenly until it is sure who beats the most arms; then serves that one"
    paper = "Urvoy et al., Generic Exploration and K-armed Voting Bandits, ICML 2013"
    seeks = "copeland"

    def _begin(self) -> None:
        super()._begin()
        self._settled: Booleans = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        self._best: int | None = None

    def _settle(self, beats: Booleans) -> None:
        self._settled |= beats
        self._keep_open()
        if not self._turns.pairs.any():
            least, _ = self._scores()
            best = (least == least.max()).nonzero()[0]
            self._best = best.item(self._generator.below(len(best)))

    def _scores(self) -> tuple[Integers, Integers]:
        """How many arms each arm beats at least, and at most."""
        beaten: Integers = np.count_nonzero(self._settled, axis=1)
        return beaten, self.n_arms - 1 - np.count_nonzero(self._settled, axis=0)

    def _keep_open(self) -> None:
        least, most = self._scores()
        hopeless = most <= least.max()
        settled = self._settled | self._settled.T
        self._turns.keep(~(settled | np.logical_and.outer(hopeless, hopeless)))

    def _winner(self) -> int | None:
        return self._best

    def candidates(self) -> int:
        """How many arms may still beat the most others, as far as has been concluded."""
        least, most = self._scores()
        return 1 if self._best is not None else int((most >= least.max()).sum())

    def _own_state(self) -> dict[str, Any]:
        settled = self._settled.astype(np.int64).tolist()
        return {**super()._own_state(), "settled": settled, "best": self._best}

    def _restore(self, own: Mapping[str, Any]) -> None:
        super()._restore(own)
        settled, best = own["settled"], own["best"]
        table = np.array(settled)
        known = table.dtype.kind == "i" and table.shape == self._settled.shape
        if not known or not ((table == 0) | (table == 1)).all():
            raise PolicyError("settled must be K lists of K times 0 or 1.")
        self._settled = table.astype(np.bool_)
        if (self._settled & self._settled.T).any():
            raise PolicyError("settled must not say of two arms that each beats the other.")
        self._keep_open()
        is_arm = type(best) is int and 0 <= best < self.n_arms
        if not (best is None if self._turns.pairs.any() else is_arm):
            raise PolicyError(
                f"best must be an arm if no pair is open, else null (found {best!r})."
            )
        self._best = best
