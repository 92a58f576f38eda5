"""Policies for many arms: groups that duel among themselves, shrink, and merge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from decimal import Context, Decimal
from itertools import combinations
from math import inf, sqrt
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import numpy as np
from msgspec import Meta

from streamduel.errors import ParameterError, PolicyError
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Real, Whole
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Integers
from streamduel.preference.logarithm import ln

Groups: TypeAlias = list[list[int]]

# `decimal` is software; its exp is correctly rounded.
_EXACT: Final = Context(prec=40)


class MergingState(State):
    """The groups, the next one in turn, and the number of the stage."""

    groups: Annotated[list[Annotated[list[Arm], Meta(min_length=1)]], Meta(min_length=1)]
    turn: Count
    stage: Annotated[int, Meta(ge=1)]


class MergingPolicy(Policy):
    """Lets arms duel in small groups only, so that K arms need O(K) comparisons instead of O(K²).

    (The papers call the groups batches; here, a batch is one of duels.) The arms are cut at random
    into groups of p, and the groups take turns. In a group's turn, each of its arms i that surely
    loses to another one of the group is eliminated, u_ij < 1/2 with
    u_ij = w_ij / n_ij + sqrt(α ln(t + C) / n_ij); then a pair of the group is chosen. When half of
    the arms are eliminated, the groups are merged, large ones with small ones, and so on with every
    half of the rest, until one arm is left. C is so large that with probability 1 - δ no bound is
    ever wrong.

    A step takes one group and, to eliminate arms, its pairs with duels since its last turn: the
    other bounds have only grown.

    Conclusions follow from the observed duels; t is their number plus 1. If several pairs are
    chosen in one call, the groups also take turns, but groups with more pairs more often: the next
    in turn is skipped for one with fewer duels in flight per pair.

    A policy of this family says which pair of a group duels (`_pick`), and whether a group with one
    arm left joins the next one (`joins`) or waits until the groups are merged.

    Attributes:
        joins: whether a single arm joins the next group immediately.
    """

    joins: ClassVar[bool]
    state_type = MergingState

    alpha = Real(
        symbol="α",
        default=1.01,
        above=0,
        meaning="width of the confidence bounds; larger explores more",
    )
    partition = Whole(
        symbol="p",
        default=4,
        at_least=4,
        meaning="how many arms a group has at the beginning",
        reason="smaller groups cannot be kept between half and one and a half of their size",
    )
    failure = Real(
        symbol="δ",
        default=0.01,
        above=0,
        below=1,
        meaning="tolerated probability of eliminating the best arm",
    )
    constant = Real(
        symbol="C",
        default=0.0,
        at_least=0,
        meaning="added to t in the bounds; 0 for C = ((4α-1)K²/((2α-1)δ))^(1/(2α-1))",
    )

    @classmethod
    def check_parameters(cls, given: Mapping[str, object], n_arms: int = 2) -> dict[str, Any]:
        """As for every policy; and α must exceed 1/2, unless C is given.

        Args:
            given: values by name, as a configuration has them.
            n_arms: K.

        Raises:
            PolicyError: a name is unknown, or a value is not allowed.
        """
        values = super().check_parameters(given, n_arms)
        if values["alpha"] <= 0.5 and not values["constant"]:
            raise ParameterError(
                "alpha",
                f"must be greater than 0.5 (found {values['alpha']!r}), or policy.constant must be"
                " given; the constant of the theory is infinite.",
            )
        return values

    def _begin(self) -> None:
        self._ln_constant = self._logarithm_of_constant()
        self._per_constant = float(_EXACT.exp(Decimal(-self._ln_constant)))
        # The random order of the priority serves for the groups, too. A last group that is too
        # small is part of the one before.
        order = self._priority.argsort().tolist()
        cuts = list(range(0, self.n_arms, self.partition))
        if len(cuts) > 1 and 2 * (self.n_arms - cuts[-1]) < self.partition:
            cuts.pop()
        self._set_groups([order[cut:end] for cut, end in zip(cuts, [*cuts[1:], None], strict=True)])
        self._stage = 1
        self._in_flight: dict[tuple[int, int], int] = {}  # duels in flight of each pair

    def _logarithm_of_constant(self) -> float:
        if self.constant:
            return ln(self.constant)
        power = 2 * self.alpha - 1
        base = ln(4 * self.alpha - 1) + 2 * ln(self.n_arms) - ln(power) - ln(self.failure)
        return base / power

    def _set_groups(self, groups: Groups) -> None:
        """Set the groups; all their pairs are to be examined."""
        self._groups = groups
        self._turn = 0
        # The group of each arm that is left.
        self._home: Integers = np.full(self.n_arms, -1, dtype=np.int64)
        for place, group in enumerate(groups):
            self._home[group] = place
        self._left = sum(map(len, groups))
        # Of each group: the pairs with duels since it was examined; None: possibly all.
        self._changed: list[set[tuple[int, int]] | None] = [None] * len(groups)
        self._group_in_flight: dict[int, int] = {}  # duels in flight of each group

    @abstractmethod
    def _pick(self, group: list[int], t: int) -> tuple[int, int]:
        """The pair that duels at step t, of a group of at least two arms."""

    def _choose(self, t: int) -> tuple[int, int]:
        place = self._advance()
        if place is None:
            return self._groups[0][0], self._groups[0][0]
        return self._pick(self._groups[place], t)

    def _advance(self) -> int | None:
        """Eliminate arms and merge groups; returns the group in turn, None if one arm is left."""
        if len(self._groups) > 1 and self._left * 2**self._stage <= self.n_arms:
            self._merge()
        while self._left > 1:
            if self._left == len(self._groups):
                self._merge()
            place = self._in_turn()
            self._prune(place)
            if len(self._groups[place]) > 1:
                self._turn = place + 1
                return place
            self._turn = place + 1
            if self.joins and self._left > 1:
                self._join_next(place)
        return None

    def _in_turn(self) -> int:
        """The next group; if it has duels in flight, the group with the fewest per pair."""
        n_groups = len(self._groups)
        turn = self._turn % n_groups
        if not self._group_in_flight:
            return turn

        def load(place: int) -> float:
            size = len(self._groups[place])
            return self._group_in_flight.get(place, 0) / (size * (size - 1)) if size > 1 else inf

        if not load(turn):
            return turn
        places: list[int] = [*range(turn, n_groups), *range(turn)]
        return min(places, key=load)

    def _prune(self, place: int) -> None:
        """Eliminate the arms of a group that surely lose to another one of it."""
        group, pairs = self._groups[place], self._changed[place]
        if pairs is not None and not pairs:
            return
        self._changed[place] = set()
        scale = self._scale(self._counts.duels + 1)
        wins = self._counts.wins
        beaten = set()
        for first, second in combinations(group, 2) if pairs is None else pairs:
            first_wins, second_wins = wins.item(first, second), wins.item(second, first)
            played = first_wins + second_wins
            if played:
                least = min(first_wins, second_wins)
                if least / played + sqrt(scale / played) < 0.5:
                    beaten.add(first if first_wins < second_wins else second)
        if len(beaten) == len(group):  # they beat each other in a cycle; the best one stays
            rank = self._rank()
            beaten.remove(max(group, key=rank.item))
        if beaten:
            self._groups[place] = [arm for arm in group if arm not in beaten]
            self._home[list(beaten)] = -1
            self._left -= len(beaten)

    def _merge(self) -> None:
        """Begin the next stage."""
        self._set_groups(merge(self._groups, self.partition, self._generator))
        self._stage += 1

    def _join_next(self, place: int) -> None:
        """Merge the group with the one after it, which is next in turn."""
        after = (place + 1) % len(self._groups)
        groups = list(self._groups)
        groups[after] = groups[after] + groups[place]
        del groups[place]
        self._set_groups(groups)
        self._turn = place if after else 0

    def _scale(self, t: int) -> float:
        """α ln(t + C), as α (ln C + ln(1 + t / C)), since C may exceed all floats."""
        return self.alpha * (self._ln_constant + ln(1.0 + t * self._per_constant))

    def _winner(self) -> int | None:
        return self._groups[0][0] if self._left == 1 else None

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        if not in_flight:
            self._in_flight.clear()
            self._group_in_flight.clear()
            return
        self._in_flight[min(first, second), max(first, second)] = in_flight
        place = self._home.item(first)
        self._group_in_flight[place] = self._group_in_flight.get(place, 0) + 1

    def _learned(self, first: int, second: int, first_wins: float, count: int) -> None:
        super()._learned(first, second, first_wins, count)
        place = self._home.item(first)
        if place >= 0 and place == self._home.item(second) and first != second:
            changed = self._changed[place]
            if changed is not None:
                changed.add((first, second))

    def _learned_many(self, duels: Duels) -> None:
        super()._learned_many(duels)
        for place in set(self._home[duels.first].tolist()) - {-1}:
            self._changed[place] = None

    def candidates(self) -> int:
        """How many arms are left, as of the last proposal."""
        return self._left

    def _restored(self) -> None:
        arms = [arm for group in self._groups for arm in group]
        if len(set(arms)) < len(arms):
            raise PolicyError("an arm must not be in two groups.")
        if self._turn > len(self._groups):
            raise PolicyError(f"turn must be from 0 to the number of groups (found {self._turn}).")
        if self._stage > self.n_arms:
            raise PolicyError(f"stage must be from 1 to K (found {self._stage}).")
        turn = self._turn
        self._set_groups(self._groups)
        self._turn = turn


def merge(groups: Groups, size: int, generator: Generator) -> Groups:
    """Merge small groups with large ones, until none has less than half of `size` if possible.

    A pass goes through the groups by size, equals in random order: the largest takes the smallest
    if both together have at most 3/2 of `size`. Passes are repeated while groups are too small.

    Args:
        groups: two or more; one of more than 3/2 of `size` arms does not change.
        size: the intended size of a group.
        generator: draws an order of all groups for each pass.

    >>> merge([[0], [1, 2, 3], [4, 5], [6]], 4, Generator(seed=7))
    [[1, 2, 3, 0], [4, 5, 6]]
    """
    while True:
        order = [groups[place] for place in generator.permutation(len(groups))]
        order.sort(key=len)
        merged = []
        small, large = 0, len(order) - 1
        while small <= large:
            group = order[large]
            if small < large and 2 * (len(order[small]) + len(group)) <= 3 * size:
                group = group + order[small]
                small += 1
            merged.append(group)
            large -= 1
        shrunk = len(merged) < len(groups)
        groups = merged
        if not shrunk or 2 * min(map(len, groups)) >= size:
            return groups
