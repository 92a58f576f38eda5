"""MergeDTS: Double Thompson Sampling for many arms, by divide and conquer."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np

from streamduel.policies.base.beta import BetaPosterior, beats
from streamduel.policies.base.merging_policy import MergingPolicy
from streamduel.policies.base.parameter import Whole
from streamduel.preference.arrays import Integers


class MergeDTS(MergingPolicy):
    """Like MergeRUCB, for many arms and without T, but with less regret: pairs are sampled.

    Arms duel in small groups; those that surely lose are eliminated, and when half are eliminated,
    the groups are merged. In a group, a preference θ_ij ~ Beta(w_ij + 1, w_ji + 1) is drawn for
    every pair from its posterior; the champion c is the arm that beats the most others of the group
    in this sample. In a second, independent sample, d is the arm least likely to beat c. So the
    likely best arm of the group soon eliminates the likely worst, where MergeRUCB chooses the
    challenger that is hardest to decide. The last arm duels only with itself.

    Where the paper leaves something open: as in `MergeRUCB`, but a group with one arm left joins
    the next group immediately, and they are one group from then on.

    `failure` is the paper's ε, `partition` its M, `constant` its C. With the defaults the bounds
    are as wide as in the theory: the first of 200 arms left after 5,000 to 20,000 duels. The
    authors' experiments have α = 0.8^6 = 0.262, M = 16 and C = 400,000, about half the width;
    without a guarantee, and with far less regret.

    All duels count, delayed and unproposed ones too, those of two groups after these are one. Duels
    in flight do not change the posterior; d is one of the arms that have the fewest of them with c.

    Draws from the generator: the order of the groups for each pass of merging; θ of the pairs of
    the group, as in `BetaPosterior`; c among ties; the second sample, if several arms may be d.

    >>> import numpy as np
    >>> rank = np.arange(30)
    >>> preferences = 0.5 + 0.4 * np.sign(rank - rank[:, None])
    >>> policy, users = MergeDTS(n_arms=30, seed=7), np.random.RandomState(7)
    >>> for _ in range(5_000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 2584)

    Source: Li, Markov, de Rijke and Zoghi, "MergeDTS: A Method for Effective Large-Scale Online
    Ranker Evaluation", ACM TOIS 38(4), 2020, Algorithm 1; after accounts of it, and the program of
    its authors.
    """

    name = "merge_dts"
    summary = "Double Thompson Sampling in small groups that shrink and merge: for many arms"
    paper = "Li et al., MergeDTS, TOIS 2020"
    joins: ClassVar[bool] = True

    partition = Whole(
        symbol="M",
        default=4,
        at_least=4,
        meaning="how many arms a group has at first",
        reason="smaller groups cannot be kept between half and one and a half of their size",
    )

    def _begin(self) -> None:
        super()._begin()
        self._posterior = self._track(BetaPosterior(self._counts))

    def _pick(self, group: list[int], t: int) -> tuple[int, int]:  # noqa: ARG002 - no bounds
        champion = self._champion_of(group)
        rivals = self._least_in_flight(champion, [arm for arm in group if arm != champion])
        if len(rivals) == 1:
            return champion, rivals[0]
        chances = self._posterior.sample(
            np.array(rivals), np.full(len(rivals), champion), self._generator
        )
        return champion, rivals[chances.argmin()]

    def _champion_of(self, group: list[int]) -> int:
        """The arm that beats the most others in the first sample; only what decides is drawn."""
        leader = max(group, key=self._rank().item)
        arms = np.array([*(arm for arm in group if arm != leader), leader])
        first, second = _pairs(len(group))
        won = beats(self._posterior, np.full(len(arms) - 1, leader), arms[:-1], self._generator)
        if won.all():  # then no other arm does
            return leader
        inner = len(first) - len(won)
        rest = beats(self._posterior, arms[first[:inner]], arms[second[:inner]], self._generator)
        scores = np.bincount(np.where(rest, first[:inner], second[:inner]), minlength=len(arms))
        scores[:-1] += ~won
        scores[-1] = np.count_nonzero(won)
        best = arms[scores == scores[scores.argmax()]]
        return int(best[self._generator.below(len(best))])

    def _least_in_flight(self, champion: int, rivals: list[int]) -> list[int]:
        """Of these arms, those with the fewest duels in flight against the champion."""
        if not self._in_flight:
            return rivals
        flying = [
            self._in_flight.get((min(arm, champion), max(arm, champion)), 0) for arm in rivals
        ]
        fewest = min(flying)
        return [arm for arm, count in zip(rivals, flying, strict=True) if count == fewest]


@cache
def _pairs(size: int) -> tuple[Integers, Integers]:
    """The places of each pair in a group of this size; those with the last arm come last."""
    second, first = np.tril_indices(size, k=-1)
    return first, second
