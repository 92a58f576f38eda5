"""What the policies for many arms share: groups that duel among themselves, shrink, and merge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from decimal import Context, Decimal
from itertools import combinations
from math import inf, sqrt
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Real, Whole
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Integers
from streamduel.preference.logarithm import ln

Groups: TypeAlias = list[list[int]]

# The arithmetic of `decimal` is software, and its exp correctly rounded.
_EXACT: Final = Context(prec=40)


class MergingPolicy(Policy):
    """Lets arms duel in small groups only, so that K arms need O(K) comparisons and not O(K²).

    (The papers call the groups batches; here, a batch is one of duels.) The arms are cut at random
    into groups of p, and the groups take turns. When it is a group's turn, each of its arms i that
    surely loses to another one there leaves for good, u_ij < 1/2 with
    u_ij = w_ij / n_ij + sqrt(α ln(t + C) / n_ij); then a pair of the group is chosen. When half of
    the arms are gone, the groups are merged, large ones with small ones, and so on with every half
    of the rest, until one arm is left. C is so large that with probability 1 - δ no bound is ever
    wrong.

    A step looks at one group and, to find who leaves, at the pairs of it that have met since its
    last turn. Other bounds have only grown.

    What is concluded, and by which t, follows from the duels seen: t is their number plus 1. Among
    several pairs chosen at once the groups take turns, too, but those with more pairs more often:
    the next in turn is passed over for one with fewer duels in flight per pair.

    A policy of the family says which pair of a group duels (`_pick`), and whether a group with one
    arm left joins the next one (`joins`) or sits out until the groups are merged.

    Attributes:
        joins: whether a single arm joins the next group at once.
    """

    joins: ClassVar[bool]

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
        meaning="probability of losing the best arm that is put up with",
    )
    constant = Real(
        symbol="C",
        default=0.0,
        at_least=0,
        meaning="what is added to t in the bounds; 0 for C = ((4α-1)K²/((2α-1)δ))^(1/(2α-1))",
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
            raise PolicyError(
                f"policy.alpha must be greater than 0.5 (found {values['alpha']!r}), or"
                " policy.constant be given; the constant that the theory asks for is infinite."
            )
        return values

    def _begin(self) -> None:
        self._ln_constant = self._logarithm_of_constant()
        self._per_constant = float(_EXACT.exp(Decimal(-self._ln_constant)))
        # The order that was drawn from the seed is as good as another. The last arms, if they are
        # too few for a group, belong to the one before.
        order = self._standing.argsort().tolist()
        cuts = list(range(0, self.n_arms, self.partition))
        if len(cuts) > 1 and 2 * (self.n_arms - cuts[-1]) < self.partition:
            cuts.pop()
        self._set_groups([order[cut:end] for cut, end in zip(cuts, [*cuts[1:], None], strict=True)])
        self._stage = 1
        self._waiting: dict[tuple[int, int], int] = {}  # by pair: duels in flight

    def _logarithm_of_constant(self) -> float:
        if self.constant:
            return ln(self.constant)
        power = 2 * self.alpha - 1
        base = ln(4 * self.alpha - 1) + 2 * ln(self.n_arms) - ln(power) - ln(self.failure)
        return base / power

    def _set_groups(self, groups: Groups) -> None:
        """Take up other groups; all pairs are to be looked at again."""
        self._groups = groups
        self._turn = 0
        self._home: Integers = np.full(self.n_arms, -1, dtype=np.int64)  # of an arm that is left
        for place, group in enumerate(groups):
            self._home[group] = place
        self._left = sum(map(len, groups))
        # By group: which pairs have met since it was looked at; None: perhaps all.
        self._news: list[set[tuple[int, int]] | None] = [None] * len(groups)
        self._busy: dict[int, int] = {}  # by group: duels in flight

    @abstractmethod
    def _pick(self, group: list[int], t: int) -> tuple[int, int]:
        """The two arms of a group, of two arms at least, that are to duel at step t."""

    def _choose(self, t: int) -> tuple[int, int]:
        place = self._go_on()
        if place is None:
            return self._groups[0][0], self._groups[0][0]
        return self._pick(self._groups[place], t)

    def _go_on(self) -> int | None:
        """Draw the conclusions that are due; the group whose turn it is, or None if all is done."""
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
        """The next group; if it has duels in flight, the one with the fewest for its pairs."""
        n_groups = len(self._groups)
        turn = self._turn % n_groups
        if not self._busy:
            return turn

        def load(place: int) -> float:
            size = len(self._groups[place])
            return self._busy.get(place, 0) / (size * (size - 1)) if size > 1 else inf

        if not load(turn):
            return turn
        places: list[int] = [*range(turn, n_groups), *range(turn)]
        return min(places, key=load)

    def _prune(self, place: int) -> None:
        """Let the arms leave that surely lose to another one of their group."""
        group, pairs = self._groups[place], self._news[place]
        if pairs is not None and not pairs:
            return
        self._news[place] = set()
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
        if len(beaten) == len(group):  # they beat each other in a cycle
            beats = self._counts.beats
            rank = {arm: (beats.item(arm), self._standing.item(arm)) for arm in group}
            beaten.remove(max(group, key=rank.__getitem__))
        if beaten:
            self._groups[place] = [arm for arm in group if arm not in beaten]
            self._home[list(beaten)] = -1
            self._left -= len(beaten)

    def _merge(self) -> None:
        """Begin the next stage."""
        self._set_groups(merge(self._groups, self.partition, self._generator))
        self._stage += 1

    def _join_next(self, place: int) -> None:
        """Put the group together with the one after it, whose turn it is then."""
        after = (place + 1) % len(self._groups)
        groups = list(self._groups)
        groups[after] = groups[after] + groups[place]
        del groups[place]
        self._set_groups(groups)
        self._turn = place if after else 0

    def _scale(self, t: int) -> float:
        """α ln(t + C), as α (ln C + ln(1 + t / C)), since C may be beyond all floats."""
        return self.alpha * (self._ln_constant + ln(1.0 + t * self._per_constant))

    def _winner(self) -> int | None:
        return self._groups[0][0] if self._left == 1 else None

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        if not in_flight:
            self._waiting.clear()
            self._busy.clear()
            return
        self._waiting[min(first, second), max(first, second)] = in_flight
        place = self._home.item(first)
        self._busy[place] = self._busy.get(place, 0) + 1

    def _take_up(self, first: int, second: int) -> None:
        place = self._home.item(first)
        if place >= 0 and place == self._home.item(second) and first != second:
            news = self._news[place]
            if news is not None:
                news.add((first, second))

    def _take_up_many(self, first: Integers, second: Integers) -> None:  # noqa: ARG002
        for place in set(self._home[first].tolist()) - {-1}:
            self._news[place] = None

    def candidates(self) -> int:
        """How many arms are left, as far as has been concluded."""
        return self._left

    def _own_state(self) -> dict[str, Any]:
        return {
            "groups": [list(group) for group in self._groups],
            "turn": self._turn,
            "stage": self._stage,
        }

    def _restore(self, own: Mapping[str, Any]) -> None:
        groups, turn, stage = own["groups"], own["turn"], own["stage"]
        nested = isinstance(groups, list) and all(isinstance(one, list) and one for one in groups)
        arms = [arm for group in groups for arm in group] if nested else []
        if not arms or any(type(arm) is not int or not 0 <= arm < self.n_arms for arm in arms):
            raise PolicyError("groups must be lists of arms, none of them empty.")
        if len(set(arms)) < len(arms):
            raise PolicyError("an arm must not be in two groups.")
        if type(turn) is not int or not 0 <= turn <= len(groups):
            raise PolicyError(f"turn must be from 0 to the number of groups (found {turn!r}).")
        if type(stage) is not int or not 1 <= stage <= self.n_arms:
            raise PolicyError(f"stage must be from 1 to K (found {stage!r}).")
        self._set_groups([list(group) for group in groups])
        self._turn, self._stage = turn, stage


def merge(groups: Groups, size: int, generator: Generator) -> Groups:
    """Join small groups with large ones, until none has less than half of `size` if that can be.

    A pass goes through the groups by size, equals in random order: the largest takes in the
    smallest if both together have at most 3/2 of `size`, else it stays as it is. There are as many
    passes as it takes.

    Args:
        groups: two or more; none of more than 3/2 of `size` arms, or it stays as it is.
        size: what a group should have.
        generator: gives an order of all groups for each pass.

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
