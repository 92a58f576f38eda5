"""MergeRUCB: Relative Upper Confidence Bound for many arms, by divide and conquer."""

from __future__ import annotations

from math import sqrt

from streamduel.policies.base.merging_policy import MergingPolicy


class MergeRUCB(MergingPolicy):
    """Finds the Condorcet winner among many arms with O(K ln T) regret, and need not be told T.

    Arms duel in small groups; those that surely lose leave, and when half have left, the groups are
    merged. In a group, the champion c is any of its arms; its challenger d is the other one with
    the largest u_jc, the best chance to refute it. A pair that is decided makes an arm leave, so
    that nobody is compared long with an arm much better or much worse. The last arm meets itself
    for ever: with probability 1 - δ it is the Condorcet winner.

    RUCB compares all pairs: with few arms its regret is far smaller, since C, which grows with K²
    and 1/δ, makes the bounds of MergeRUCB wide from the first duel on. This one is for hundreds of
    arms, and a step costs the same for any K. With the defaults, which the theory asks for, it
    hardly begins to eliminate within 100,000 duels; the authors measured with others, see
    `constant`.

    Where the paper leaves something open: x/0 := 1, so an unseen pair's bound is 2 (a pair seen a
    few times has more, and comes first). All arms that a group loses leave at once; if they all
    would, as after duels seen in bulk, the one that beats the most arms stays. A group with one arm
    is passed over, and if all are such, they are merged. Groups are merged, at most once a step,
    when at most K / 2^S arms are left in stage S. Counts are kept, and t goes on, from stage to
    stage. The order of arms from which groups are cut is that which the champion follows in ties;
    a last group of less than p/2 arms belongs to the one before it.

    All duels count, late and unasked ones too, those of two groups as soon as these are merged.
    Duels in flight count in n_ij under the root, and leave the mean as it is; those of an unseen
    pair make its bonus sqrt(1 / (1 + their number)).

    Draws from the generator: the order of the groups for each pass of merging; c; d among ties.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        alpha: α, above 1/2 unless `constant` is given: larger explores more.
        partition: p, at least 4.
        failure: δ.
        constant: C; 0 for the one that the theory asks for. Their experiments with many arms went
            outside of it, to α = 0.8^6 and C = 400,000.

    >>> import numpy as np
    >>> rank = np.arange(30)
    >>> preferences = 0.5 + 0.4 * np.sign(rank - rank[:, None])
    >>> policy, users = MergeRUCB(n_arms=30, seed=7), np.random.RandomState(7)
    >>> for _ in range(10_000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 3551)

    Source: Zoghi, Whiteson and de Rijke, "MergeRUCB: A Method for Large-Scale Online Ranker
    Evaluation", WSDM 2015, Algorithm 1; after accounts of it, and programs, by others and by the
    first author.
    """

    name = "merge_rucb"
    summary = "RUCB in small groups that shrink and merge: for many arms; needs no horizon"
    paper = "Zoghi et al., MergeRUCB, WSDM 2015"
    joins = False

    def _pick(self, group: list[int], t: int) -> tuple[int, int]:
        champion = group[self._generator.below(len(group))]
        scale, wins = self._scale(t), self._counts.wins
        highest, best = -1.0, [champion]
        for arm in group:
            if arm == champion:
                continue
            won = wins.item(arm, champion)
            played = won + wins.item(champion, arm)
            pair = (arm, champion) if arm < champion else (champion, arm)
            waiting = self._waiting.get(pair, 0)
            if played:
                bound = won / played + sqrt(scale / (played + waiting))
            else:
                bound = 1.0 + sqrt(1.0 / (1 + waiting))
            if bound > highest:
                highest, best = bound, [arm]
            elif bound == highest:
                best.append(arm)
        return champion, best[self._generator.below(len(best))]
