"""D-TS and D-TS+: Double Thompson Sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamduel.policies.base.beta import BetaPosterior
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.reasons import sampled_chance
from streamduel.policies.base.windowed_policy import Window, WindowedPolicy
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.copeland_bounds import CopelandBounds
from streamduel.preference.divergence import from_half_each
from streamduel.preference.logarithm import ln


class DoubleThompson(WindowedPolicy):
    """Finds a Copeland winner, or the Condorcet winner if there is one; needs no horizon.

    Thompson sampling, twice: preferences are drawn from their posterior distribution,
    θ_ij ~ Beta(w_ij + 1, w_ji + 1). The champion c is the arm that beats the most others in a first
    sample; the challenger d is the arm with the best chance against c in a second, independent one.
    c itself has 1/2 there, so a champion that no arm seems to beat duels with itself, which has no
    regret. Confidence bounds restrict both choices: c must be one of the arms that may beat the
    most others by their upper bounds u_cj, and d must not surely beat c, l_dc ≤ 1/2, since that
    pair is decided. The regret is O(K² ln T), with a Condorcet winner O(K ln T + K² ln ln T).

    Where the paper leaves something open: "beats the most others" counts all arms, not only those
    that may be c. Ties are broken uniformly at random. An unseen pair has u = 2, l = -1; a tied
    duel counts 1/2 in both parameters of the Beta distribution. d may be c.

    Delayed outcomes and unproposed duels count like all others. Duels in flight count in n of the
    bounds.

    Choose it where a published algorithm with a bound for both kinds of winner is wanted: of those
    here it has the least regret in most simulations; `TopTwo` has less in most. A step costs more
    than one of RUCB or RMED.

    Draws from the generator: if several arms may be c, the first sample, as far as it decides.
    First, for the pairs i < j, ascending, with such an arm and `few` duels (`BetaPosterior`), a
    word each decides whether θ_ij > 1/2. Then the arms that may be c have their turn, in which all
    unknown θ_ij of an arm i are drawn, j ascending. Next in turn is the arm that can beat the most
    others; among equals, the one that beats the most in the counts, then by an order drawn once
    from the seed. When none is left that can beat as many as the best so far, c is drawn among the
    best. Then comes the second sample, of θ_jc, j ascending, and d is drawn if there is a tie.

    Args:
        alpha: α, above 1/2: the bonus is sqrt(α ln t / n). Larger explores more.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = DoubleThompson(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 3, 74)

    Source: Wu and Liu, "Double Thompson Sampling for Dueling Bandits", NIPS 2016, Algorithm 1;
    after accounts of it, and the program of its first author.
    """

    name = "double_thompson"
    summary = "champion and challenger from two samples of the posterior; needs no horizon"
    paper = "Wu and Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016 (D-TS)"
    seeks = "copeland"

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="the regret bounds of D-TS hold only above it",
    )
    window = Window()

    def _begin(self) -> None:
        self._bounds = self._track(CopelandBounds(self._counts))
        self._posterior = self._track(BetaPosterior(self._counts))

    def _choose(self, t: int) -> tuple[int, int]:
        self._bounds.advance(self.alpha * ln(t))
        champion = self._champion_of(self._likely())
        return champion, self._challenger(champion)

    def _likely(self) -> Integers:
        """C: the arms with the largest upper Copeland score."""
        losses = self._bounds.losses
        likely: Integers = (losses == losses[losses.argmin()]).nonzero()[0]
        return likely

    def _champion_of(self, likely: Integers) -> int:
        """The arm of C that beats the most arms in the first sample."""
        if len(likely) == 1:
            return likely.item(0)
        n_arms = self.n_arms
        waiting = np.zeros(n_arms, dtype=np.bool_)
        waiting[likely] = True
        touching = self._posterior.few
        if len(likely) < n_arms:
            touching = touching & (waiting | waiting[:, None])
        # How many arms each arm beats at most; exactly, after its turn.
        scores = np.full(n_arms, n_arms - 1)
        first, second = touching.nonzero()
        if len(first):
            better = self._better(first, second, few=True)
            scores -= np.bincount(np.where(better, second, first), minlength=n_arms)
        order = self._counts.beats * n_arms + self._priority + 1
        unknown = np.ones(n_arms, dtype=np.bool_)
        best: list[int] = []
        while True:
            arm = int(((scores * n_arms * n_arms + order) * waiting).argmax())
            if not waiting[arm] or (best and scores[arm] < scores[best[0]]):
                break
            waiting[arm] = unknown[arm] = False
            self._have_turn(arm, unknown, scores)
            if not best or scores[arm] > scores[best[0]]:
                best = [arm]
            elif scores[arm] == scores[best[0]]:
                best.append(arm)
        return best[0] if len(best) == 1 else self._one_of(best, scores)

    def _have_turn(self, arm: int, unknown: Booleans, scores: Integers) -> None:
        """Draw the unknown θ_ij of an arm i, and update the scores."""
        rivals = (self._posterior.many[arm] & unknown).nonzero()[0]
        if len(rivals):
            better = self._better(np.full_like(rivals, arm), rivals, few=False)
            scores[rivals[better]] -= 1
            scores[arm] -= len(rivals) - np.count_nonzero(better)

    def _better(self, first: Integers, second: Integers, *, few: bool) -> Booleans:
        """Which θ_ij are above 1/2 in the first sample."""
        if few:
            return self._posterior.better(first, second, self._generator)
        return self._posterior.sample(first, second, self._generator) > 0.5

    def _one_of(self, best: list[int], scores: Integers) -> int:  # noqa: ARG002 - for D-TS+
        """One of the arms that share the best score."""
        return self._generator.choose(best)

    def _challenger(self, champion: int) -> int:
        """The arm with the best chance against c in the second sample."""
        allowed = ~self._bounds.beats[:, champion]  # l_jc ≤ 1/2
        allowed[champion] = False
        rivals = allowed.nonzero()[0]
        chances = np.zeros(self.n_arms)
        chances[champion] = 0.5
        chances[rivals] = self._posterior.sample(
            rivals, np.full_like(rivals, champion), self._generator
        )
        return self._generator.choose_index(chances == chances[chances.argmax()])

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: by samples."""
        losses, wins = self._bounds.losses, self._counts.wins
        champion, rival = first, second
        if losses[second] < losses[first]:
            champion, rival = second, first
        most = self.n_arms - 1 - losses.item(champion)
        return (
            f"{arms[champion]} may beat {most} of {self.n_arms - 1} others, and of the rankers "
            f"that may beat it, {arms[rival]} has drawn the largest chance: it is sampled from "
            f"{sampled_chance(wins, rival, champion)}."
        )

    def candidates(self) -> int:
        """How many arms have the largest upper Copeland score; at least 1."""
        self._bounds.advance(self.alpha * ln(self._counts.duels + 1))
        return len(self._likely())


class DoubleThompsonPlus(DoubleThompson):
    """D-TS with ties broken by their expected regret, which helps with several winners.

    Of the arms that share the best score in the first sample, the champion is the one with the
    smallest R_i = Σ_j (2 max_k s_k - s_i - s_j) / d(θ_ij, 1/2), the sum over j ≠ i, where s counts
    the arms that an arm beats in the sample: about the regret of the duels that distinguish i from
    all others. d is the divergence of Bernoulli distributions. The rest is as in `DoubleThompson`.

    Where the paper leaves something open: k goes over all arms.

    Draws from the generator: as D-TS, but for pairs with few duels, too, θ_ij itself is sampled.
    If several arms are best, the rest of the first sample follows, pairs i < j ascending; c is
    drawn among those with the smallest R.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = DoubleThompsonPlus(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 3, 70)

    Source: as for D-TS.
    """

    name = "double_thompson_plus"
    summary = "D-TS that breaks ties by their expected regret; needs no horizon"
    paper = "Wu and Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016 (D-TS+)"

    def _begin(self) -> None:
        super()._begin()
        self._sample: Floats = np.empty((0, 0))  # [i, j]: θ_ij of this step, NaN if not drawn

    def _champion_of(self, likely: Integers) -> int:
        self._sample = np.full((self.n_arms, self.n_arms), np.nan)
        return super()._champion_of(likely)

    def _better(self, first: Integers, second: Integers, *, few: bool) -> Booleans:  # noqa: ARG002
        chances = self._posterior.sample(first, second, self._generator)
        self._sample[first, second] = chances
        self._sample[second, first] = 1 - chances
        return chances > 0.5

    def _one_of(self, best: list[int], scores: Integers) -> int:
        first, second = np.triu(np.isnan(self._sample), k=1).nonzero()
        better = self._better(first, second, few=False)
        scores -= np.bincount(np.where(better, second, first), minlength=self.n_arms)
        costs = [self._cost(arm, scores) for arm in best]
        cheapest = [arm for arm, cost in zip(best, costs, strict=True) if cost == min(costs)]
        return self._generator.choose(cheapest)

    def _cost(self, arm: int, scores: Integers) -> float:
        """R_i of an arm i, added up in the order of the arms."""
        chances = self._sample[arm]
        chances[arm] = 0.5
        information = from_half_each(chances)
        others = information > 0  # not i itself
        regret = 2 * scores.max() - scores[arm] - scores[others]
        costs = np.add.accumulate(regret / information[others])
        return float(costs[-1]) if len(costs) else 0.0
