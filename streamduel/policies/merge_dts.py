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
    """As MergeRUCB, for many arms and with no T, but with less regret: pairs are sampled.

    Arms duel in small groups; those that surely lose leave, and when half have left, the groups are
    merged. In a group, a chance θ_ij ~ Beta(w_ij + 1, w_ji + 1) is drawn for every pair from what
    its duels leave open; the champion c is the arm that beats the most others of the group in this
    sample. A second sample, independent of the first, says which arm d is the least likely to beat
    c. So the likely best of the group soon drives the likely worst out, where MergeRUCB looks for
    the challenger that is hardest to decide. The last arm meets itself for ever.

    Where the paper leaves something open: see `MergeRUCB`, for which the same holds, but that a
    group with one arm left joins the next group at once, and they are dueling as one from then on.

    With the defaults the bounds are as wide as the theory asks for, and an arm leaves late. The
    authors' experiments used α = 0.8^6 = 0.262, M = 16 and C = 400,000, a sixth of the width; then
    there is no guarantee, and far less regret.

    All duels count, late and unasked ones too, those of two groups as soon as these are one. Duels
    in flight change no posterior; d is one of the arms that have the fewest of them with c.

    Draws from the generator: the order of the groups for each pass of merging; θ of the pairs of
    the group, as `BetaPosterior` says; c among ties; the second sample, if d is not the only arm
    in question.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        alpha: α, above 1/2 unless `constant` is given: larger explores more.
        partition: M, at least 4.
        failure: ε.
        constant: C; 0 for the one that the theory asks for.

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
        meaning="how many arms a group has at the beginning",
        reason="smaller groups cannot be kept between half and one and a half of their size",
    )

    def _begin(self) -> None:
        super()._begin()
        self._posterior = BetaPosterior(self._counts)

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
        """The arm that beats the most others in the first sample, as far as it must be drawn."""
        leader = max(group, key=self._rank)
        arms = np.array([*(arm for arm in group if arm != leader), leader])
        first, second = _pairs(len(group))
        won = beats(self._posterior, np.full(len(arms) - 1, leader), arms[:-1], self._generator)
        if won.all():  # then nobody else does
            return leader
        inner = len(first) - len(won)
        rest = beats(self._posterior, arms[first[:inner]], arms[second[:inner]], self._generator)
        scores = np.bincount(np.where(rest, first[:inner], second[:inner]), minlength=len(arms))
        scores[:-1] += ~won
        scores[-1] = np.count_nonzero(won)
        best = arms[scores == scores[scores.argmax()]]
        return int(best[self._generator.below(len(best))])

    def _rank(self, arm: int) -> tuple[int, int]:
        return self._counts.beats.item(arm), self._standing.item(arm)

    def _least_in_flight(self, champion: int, rivals: list[int]) -> list[int]:
        """Of these arms, those with the fewest duels in flight against the champion."""
        if not self._waiting:
            return rivals
        waiting = [self._waiting.get((min(arm, champion), max(arm, champion)), 0) for arm in rivals]
        fewest = min(waiting)
        return [arm for arm, many in zip(rivals, waiting, strict=True) if many == fewest]

    def _take_up(self, first: int, second: int) -> None:
        super()._take_up(first, second)
        self._posterior.refresh(first, second)

    def _take_up_many(self, first: Integers, second: Integers) -> None:
        super()._take_up_many(first, second)
        self._posterior.refresh_many(first, second)


@cache
def _pairs(size: int) -> tuple[Integers, Integers]:
    """The places of each pair in a group of so many arms; those with the last arm come last."""
    second, first = np.tril_indices(size, k=-1)
    return first, second
