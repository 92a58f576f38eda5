"""C2B: Catching the Condorcet winner in Batches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from streamduel.policies.base.batched_policy import BatchedPolicy, estimates
from streamduel.policies.base.parameter import Choice
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.divergence import EmpiricalDivergence
from streamduel.preference.logarithm import ln
from streamduel.preference.power import power


class C2B(BatchedPolicy):
    """Finds the Condorcet winner in O(ln T) rounds with O(K² ln² K + K ln T) regret; needs T.

    In each round the arm that surely beats the most others is the candidate. The arms that it
    surely beats duel only with the candidate; all others duel with all arms, so that a winner that
    is not the candidate can become the candidate. Once the winner is the candidate, it stays the
    candidate, and the duels of its K - 1 pairs eliminate its rivals. The rounds grow geometrically,
    so a few of them suffice: for services that cannot adapt after every click. RMED, which does,
    has less regret. Without a Condorcet winner, a wrong champion may remain permanently.

    Where the paper leaves something open: a pair is compared q_r times in a round, once even where
    lines 9 and 11 name it twice, and an arm never duels with itself before it is the last.
    q_r = max(1, ⌊q^r⌋) with an exact power. c_ij is infinite for pairs never compared. D_r and the
    candidate follow from the counts at the end of the last round, the radius with its q_(r-1); in
    round 1 no arm has been beaten and all pairs are compared. Ties for the candidate are broken
    uniformly at random. Counts accumulate over rounds. Elimination is permanent; if it would
    eliminate all arms, it is delayed by a round. "log" is the natural logarithm.

    Delayed outcomes: duels of a pair that the open batch lacks count towards it, whichever round
    proposed them. All observed duels, surplus and unproposed ones too, are in N_ij and p̂_ij. A
    round is complete when its last quota is filled. Its "end", at which arms are eliminated and the
    next candidate is found, is the next time that a pair is asked for; later outcomes take effect
    at the end of the next round. If all missing duels are in flight, they are proposed again.

    Draws from the generator: for each duel, one of those that the batch lacks; at the beginning of
    a round, the candidate if several tie.

    Args:
        rounds: B. ⌊ln T⌋ when left out; the paper's second experiment has ⌊ln T⌋ + 6, with less
            regret. q = T^(1/B) is above 1 for every B, since T is.
        elimination: when arm i leaves. `kl`, the text of section 4: when I_i - I* > ln T + f(K),
            with I_i = Σ N_ij d(p̂_ij, 1/2) over all j that beat i, I* the least of all arms, and
            f(K) = 0.3 K^1.01. `kl_anytime`: with ln t, t the duels so far, instead of ln T; this
            reproduces the published figures, but sometimes eliminates the winner (of six arXiv
            rankers with T = 10⁵, in 7 of 1,000 runs with B = ⌊ln T⌋; `kl` in none).
            `hoeffding`, line 13: when p̂_ji > 1/2 + sqrt(ln(K² B T) / 2 N_ij) for an active j;
            more than twice the regret, and with 64 arms and T = 10⁵ that of uniform sampling.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = C2B(n_arms=3, seed=7, horizon=1000), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), policy.rounds, int(policy.wins.sum())
    (0, 1, 6, 232)

    Source: Agarwal, Ghuge and Nagarajan, "An Asymptotically Optimal Batched Algorithm for the
    Dueling Bandit Problem", NeurIPS 2022; line numbers are those of Algorithm 1.
    """

    name = "c2b"
    summary = "few growing rounds around a candidate; for services that adapt rarely"
    paper = "Agarwal et al., An Asymptotically Optimal Batched Algorithm, NeurIPS 2022"

    elimination = Choice(
        "kl",
        "kl_anytime",
        "hoeffding",
        symbol="γ",
        default="kl",
        meaning="evidence that eliminates an arm: above ln T, above ln t, or by Hoeffding's bound",
    )

    def _begin_round(self) -> Integers:
        """Lines 5 to 11: all active pairs but those of two arms that the candidate beats."""
        played, means = estimates(self.wins)
        gaps = np.maximum(means - 0.5, 0.0)
        # Line 5 with equation (1), squared; there is no gap where there was no duel.
        width = 2 * ln(2 * self.n_arms**2 * self._repeats(self._round - 1))
        active = self._active_pairs()
        defeated = (played * (gaps * gaps) > width) & active
        most = np.where(self._active, defeated.sum(axis=1), -1)  # line 6
        candidate = self._generator.choose_index(most == most.max())
        defeated_by_it = defeated[candidate]  # lines 7 to 11; never the candidate itself
        pairs = active & ~np.logical_and.outer(defeated_by_it, defeated_by_it)
        return np.where(pairs, self._repeats(self._round), 0)

    def _end_round(self) -> Booleans:
        """Lines 13 and 14, or the criterion of section 4."""
        if self.elimination == "hoeffding":
            played, means = estimates(self.wins)
            gaps = np.maximum(means - 0.5, 0.0)
            width = (2 * ln(self.n_arms) + ln(self.rounds) + ln(self.horizon)) / 2
            beats = (played * (gaps * gaps) > width) & self._active[:, None]
            beaten: Booleans = np.logical_or.reduce(beats, axis=0)
            return beaten
        evidence = EmpiricalDivergence(self._counts).sums  # I_i
        lowest: float = evidence.min()
        duels = self._counts.duels if self.elimination == "kl_anytime" else self.horizon
        slack = 0.3 * float(power(self.n_arms, Fraction(101, 100)))  # f(K)
        return evidence - lowest > ln(max(duels, 1)) + slack
