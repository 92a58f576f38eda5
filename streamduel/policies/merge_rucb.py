"""MergeRUCB: Relative Upper Confidence Bound for many arms, by divide and conquer."""

from __future__ import annotations

from math import sqrt

from streamduel.policies.base.merging_policy import MergingPolicy


class MergeRUCB(MergingPolicy):
    """Finds the Condorcet winner among many arms with O(K ln T) regret, without knowing T.

    Arms duel in small groups; those that surely lose are eliminated, and when half are eliminated,
    the groups are merged. In a group, the champion c is any of its arms; its challenger d is the
    other one with the largest u_jc, the best chance to beat it. A decided pair eliminates an arm,
    so that no arm is compared for long with a much better or much worse one. The last arm duels
    only with itself: with probability 1 - δ it is the Condorcet winner.

    RUCB compares all pairs: with few arms its regret is far smaller, since C, which grows with K²
    and 1/δ, makes the bounds of MergeRUCB wide from the first duel on. This one is for hundreds of
    arms, and a step costs the same for any K. With the defaults, those of the theory, the first of
    200 arms left after 14,000 to 50,000 duels; the authors' experiments have others, see
    `constant`.

    Where the paper leaves something open: x/0 := 1, so an unseen pair's bound is 2 (a pair seen a
    few times has more, and comes first). All beaten arms of a group are eliminated together; if all
    are beaten, as after many duels in one call, the one that beats the most arms stays. A group
    with one arm is skipped, and if all are such, they are merged. Groups are merged, at most once a
    step, when at most K / 2^S arms are left in stage S. Counts and t continue from stage to stage.
    The arms are cut into groups in the order that breaks ties of the champion; a last group of less
    than p/2 arms is part of the one before it.

    All duels count, delayed and unproposed ones too, those of two groups after these are merged.
    Duels in flight count in n_ij under the root, and do not change the mean; those of an unseen
    pair make its bonus sqrt(1 / (1 + their number)).

    Draws from the generator: the order of the groups for each pass of merging; c; d among ties.

    Args:
        constant: C; 0 for that of the theory. The authors' experiments with many arms have
            α = 0.8^6 and C = 400,000, outside of the theory.

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
        champion = self._generator.choose(group)
        scale, wins = self._scale(t), self._counts.wins
        highest, best = -1.0, [champion]
        for arm in group:
            if arm == champion:
                continue
            won = wins.item(arm, champion)
            played = won + wins.item(champion, arm)
            pair = (arm, champion) if arm < champion else (champion, arm)
            in_flight = self._in_flight.get(pair, 0)
            if played:
                bound = won / played + sqrt(scale / (played + in_flight))
            else:
                bound = 1.0 + sqrt(1.0 / (1 + in_flight))
            if bound > highest:
                highest, best = bound, [arm]
            elif bound == highest:
                best.append(arm)
        return champion, self._generator.choose(best)
