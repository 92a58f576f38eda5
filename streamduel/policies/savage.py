"""SAVAGE: Sensitivity Analysis of VAriables for Generic Exploration, for two kinds of winners."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.least_played import EvenPolicy, Pass
from streamduel.policies.base.state import Arm, State
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.hoeffding import duels_until_sure, surely_beats
from streamduel.preference.logarithm import ln
from streamduel.preference.winners import score_bounds


class _Savage(EvenPolicy):
    """Algorithm 1 with a known horizon: compare the open pairs, then serve the winner.

    A subclass closes pairs when it is known which arm of a pair is better (`_settle`), and names
    the winner once no pair is open (`_winner`).
    """

    def _begin(self) -> None:
        super()._begin()
        # ln(2 N T / δ), N = K (K - 1) / 2, δ = 1 / T; as a sum, since the product is large.
        self._width = ln(self.n_arms * (self.n_arms - 1)) + 2 * ln(self.horizon)

    @abstractmethod
    def _settle(self, beats: Booleans) -> None:
        """Close pairs; [i, j] is whether i surely beats j, for open pairs, at least one of them."""

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - radii depend on T alone
        arm = self._conclude()
        return self._turns.next() if arm is None else (arm, arm)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """Pass after pass, up to the first duel that could decide a pair."""
        if self._conclude() is not None:
            return super()._choose_ahead(t, limit)
        pairs = self._turns.ahead(duels_until_sure(self.wins, self._width), limit)
        return pairs, np.ones(len(pairs), dtype=np.int64)

    def _conclude(self) -> int | None:
        """Close pairs that the duels since the last call have decided; returns the winner."""
        if self._may_conclude():
            beats = surely_beats(self.wins, self._width) & self._turns.pairs
            if beats.any():
                self._settle(beats)
        return self._winner()


class CondorcetSavageState(State):
    """The pass, and the arms that have not surely lost."""

    turns: Pass
    active: list[Arm]


class CondorcetSavage(_Savage):
    """Finds the Condorcet winner with probability 1 - 1/T, then serves it alone; needs T.

    The pair that has been compared least is compared next. An arm is eliminated when it surely
    loses to another one, p̂ + c(n) < 1/2 with c(n) = sqrt(ln(K (K - 1) T / δ) / 2n), δ = 1/T, and
    all of its pairs are closed. It assumes only that there is a winner; the price is that all pairs
    are explored evenly, with O(K² ln(KT)) duels. RUCB has a fraction of its regret, and does not
    need T; SAVAGE is the baseline.

    Where the paper leaves something open: "least compared" is among the pairs of two arms that are
    left, ties uniformly at random; pairs are examined when the next one is asked for, after each
    duel if duels are observed one by one. Elimination is permanent. After many duels in one call,
    every arm may lose to another, as in a cycle: then the one of them that beats the most arms
    stays.

    All duels count, delayed and unproposed ones too; outcomes of an eliminated arm change only the
    counts. Duels in flight count as played.

    Draws from the generator: at the beginning of a pass through the least compared pairs, one word
    for each of them if there are several.

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
    summary = "compares all pairs evenly until all arms but one have surely lost; then serves it"
    paper = "Urvoy et al., Generic Exploration and K-armed Voting Bandits, ICML 2013"
    state_type = CondorcetSavageState

    def _begin(self) -> None:
        super()._begin()
        self._active: Booleans = np.ones(self.n_arms, dtype=np.bool_)
        self._last: int | None = None

    def _settle(self, beats: Booleans) -> None:
        remaining = self._active & ~np.logical_or.reduce(beats, axis=0)
        if not remaining.any():
            remaining[np.where(self._active, self._rank(), -1).argmax()] = True
        self._keep(remaining)

    def _keep(self, remaining: Booleans) -> None:
        self._active = remaining
        self._turns.keep(np.logical_and.outer(remaining, remaining))
        arms = remaining.nonzero()[0]
        self._last = arms.item() if len(arms) == 1 else None

    def _winner(self) -> int | None:
        return self._last

    def candidates(self) -> int:
        """How many arms have not surely lost to another, as of the last proposal."""
        return int(self._active.sum())

    def _restored(self) -> None:
        if not self._active.any():
            raise PolicyError("active must hold at least one arm.")
        self._keep(self._active)


class CopelandSavageState(State):
    """The pass, the settled pairs, and the arm found."""

    turns: Pass
    settled: list[list[Arm]]
    best: Arm | None


class CopelandSavage(_Savage):
    """Finds an arm that beats the most others with probability 1 - 1/T, then serves it alone.

    Like Condorcet SAVAGE, but it needs no arm that beats all others, and so cannot eliminate an arm
    for a single loss. A pair is settled when one of its arms surely beats the other. Then an arm
    beats at least as many as it surely beats, and at most all but those that surely beat it. A pair
    is closed once it is settled, or neither of its arms can beat more than some arm surely does.
    With no open pair left, the arm that surely beats the most is served; a tie is drawn once. The
    exploration costs O(K² ln(KT)) duels; CCB and SCB explore less.

    Where the paper leaves something open: an arm that can at most beat as many as the best one
    surely does is not explored further ("more", not "as many"), since serving it would not lower
    the regret. A settled pair stays settled. Bounds, order, delayed outcomes and draws are as in
    `CondorcetSavage`.

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
    summary = "compares pairs evenly until an arm surely beats the most others; then serves it"
    paper = "Urvoy et al., Generic Exploration and K-armed Voting Bandits, ICML 2013"
    seeks = "copeland"
    state_type = CopelandSavageState

    def _begin(self) -> None:
        super()._begin()
        self._settled: Booleans = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        self._best: int | None = None

    def _settle(self, beats: Booleans) -> None:
        self._settled |= beats
        self._keep_open()
        if not self._turns.pairs.any():
            least, _ = score_bounds(self._settled)
            self._best = self._generator.choose_index(least == least.max())

    def _keep_open(self) -> None:
        least, most = score_bounds(self._settled)
        hopeless = most <= least.max()
        settled = self._settled | self._settled.T
        self._turns.keep(~(settled | np.logical_and.outer(hopeless, hopeless)))

    def _winner(self) -> int | None:
        return self._best

    def candidates(self) -> int:
        """How many arms may beat the most others, as of the last proposal."""
        least, most = score_bounds(self._settled)
        return 1 if self._best is not None else int((most >= least.max()).sum())

    def _restored(self) -> None:
        if (self._settled & self._settled.T).any():
            raise PolicyError("settled must not hold of two arms that each beats the other.")
        self._keep_open()
        if self._turns.pairs.any() != (self._best is None):
            raise PolicyError("a winner must be found if, and only if, no pair is open.")
