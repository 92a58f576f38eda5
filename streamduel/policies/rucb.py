"""RUCB: Relative Upper Confidence Bound."""

from __future__ import annotations

from math import ceil, exp

from streamduel.policies.base.parameter import Flag, Real
from streamduel.policies.base.reasons import ByUpperBounds
from streamduel.policies.base.state import Arm, State
from streamduel.policies.base.windowed_policy import Window, WindowedPolicy
from streamduel.preference.bounds import UpperBounds
from streamduel.preference.logarithm import ln


class RUCBState(State):
    """The member of the set B (at most one)."""

    hypothesis: Arm | None


class RUCB(ByUpperBounds, WindowedPolicy):
    """Finds the Condorcet winner with O(K ln T) regret, without knowing T.

    A champion c is drawn from the arms that may be the winner: all their upper bounds u_cj are at
    least 1/2. Its challenger d is the arm with the best chance to beat it, the largest u_jc. The
    bounds of a winner stay above 1/2; those of its challengers fall below, until the largest bound
    against it is its own 1/2 and it duels only with itself, which has no regret.

    Where the paper leaves something open: x/0 := 1, so an unseen pair's bound is 1 + 1 = 2. t is
    the number of duels seen plus 1, those of an arm with itself included. d may be c, namely
    when u_cc = 1/2 is the only largest bound (excluding c would mean linear regret);
    otherwise ties are broken uniformly at random.

    Draws from the generator, each only if there is more than one choice: c (with `champion_set`,
    first a fair coin, then c, unless the coin kept the previous champion), then d among ties.

    Args:
        alpha: α, above 1/2: the bonus is sqrt(α ln t / n). Larger explores more.
        champion_set: keep a hypothesized champion, the set B of the proceedings' Algorithm 1, and
            choose it half of the time while it is a candidate.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = RUCB(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 172)

    Source: Zoghi, Whiteson, Munos and de Rijke, "Relative Upper Confidence Bound for the K-Armed
    Dueling Bandit Problem", ICML 2014; line numbers are those of Algorithm 1 in arXiv:1312.3393.
    """

    name = "rucb"
    summary = "optimistic champion against its strongest challenger; needs no horizon"
    paper = "Zoghi et al., Relative Upper Confidence Bound, ICML 2014"

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="the regret bounds of RUCB hold only above it",
    )
    champion_set = Flag(
        symbol="B",
        default=False,
        meaning="keep a hypothesized champion, as in the proceedings of ICML",
    )
    window = Window()
    state_type = RUCBState

    def _begin(self) -> None:
        self._bounds = self._track(UpperBounds(self._counts))  # line 1 (and W, in the counts)
        self._hypothesis: int | None = None

    def _choose(self, t: int) -> tuple[int, int]:
        scale = self.alpha * ln(t)  # lines 3 and 4: the bounds follow from it and the counts
        candidates = self._bounds.possible_winners(scale)  # line 5
        if self.champion_set:
            champion = self._champion_by_hypothesis(candidates.tolist())
        elif len(candidates):
            champion = candidates.item(self._generator.below(len(candidates)))
        else:
            champion = self._generator.below(self.n_arms)
        # line 6: d = argmax_j u_jc
        return champion, self._generator.choose(self._bounds.challengers(champion, scale))

    def _champion_by_hypothesis(self, candidates: list[int]) -> int:
        """Lines 5 to 9 of the proceedings' version: c, given C and B."""
        if not candidates:
            self._hypothesis = None
            return self._generator.below(self.n_arms)
        if len(candidates) == 1:
            self._hypothesis = candidates[0]
            return candidates[0]
        if self._hypothesis not in candidates:
            self._hypothesis = None
        elif self._generator.coin(1, 2):
            return self._hypothesis
        others = [arm for arm in candidates if arm != self._hypothesis]
        return self._generator.choose(others)

    def _duels_alone(self, arm: int, t: int, limit: int) -> int:
        # While c = d, only ln t changes, and with it the bounds, until one of them reaches 1/2. The
        # counts give that step up to a rounding error; the bounds at the step before and at the
        # step itself give it exactly.
        last, end = t, t + limit  # the last step known to be alone, the first known not to be
        if not self._alone(arm, last):
            return 1
        guess = min(end, ceil(exp(min(self._bounds.challenge(arm) / self.alpha, ln(end)))))
        for step in (guess - 1, guess):
            if last < step < end:
                last, end = (step, end) if self._alone(arm, step) else (last, step)
        while end - last > 1:
            step = (last + end) // 2
            last, end = (step, end) if self._alone(arm, step) else (last, step)
        return end - t

    def _alone(self, arm: int, t: int) -> bool:
        """Whether lines 5 and 6 can only give this arm against itself at step t."""
        return self._bounds.rules_out_all_but(arm, self.alpha * ln(t))
