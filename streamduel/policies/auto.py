"""auto: looks for an arm that beats all others until it is sure that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.double_thompson import DoubleThompson
from streamduel.policies.rmed1 import RMED1
from streamduel.preference.arrays import Integers
from streamduel.preference.evidence import condorcet_winner_possible


class Auto(Policy):
    """RMED1 while an arm may beat all others; Double Thompson Sampling once surely none does.

    RMED1 is quick and loses little if there is a Condorcet winner. If there is none it looks for
    one all the same, and loses for ever. So when every arm has surely lost to some other one
    (`condorcet_winner_possible`), Double Thompson Sampling goes on from the same counts, and finds
    a Copeland winner. If there is a Condorcet winner, this ever happens with a probability of at
    most δ, though it is looked at again and again; and Double Thompson Sampling finds that winner,
    too. There is no way back, but for a change of arms, with which all begins anew from the
    counts. `stage` says which of the two is at work.

    It looks when it is asked for a pair, if there have been 1 % more duels of different arms since
    it last looked, and at least K. How many it takes to be sure depends on the gaps: some four
    hundred for each pair of a cycle in which arms win 60 % of their duels, 14,000 at 52 %.

    Choose it where decisions must be quick, one ranker probably beats all others, and nobody is
    there to see whether it does. If regret is all that counts, take `DoubleThompson` at once.

    Both have their default parameters, treat late duels as they do alone, and draw from the
    generator what they draw alone; looking draws nothing.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        delta: δ, between 0 and 1; smaller is surer, and later.

    >>> import numpy as np
    >>> cycle = np.array([[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> policy, users = Auto(n_arms=3, seed=7), np.random.RandomState(7)
    >>> stages = []
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < cycle[first, second]))
    ...     stages.append(policy.stage)
    >>> stages.count("rmed1"), stages.count("double_thompson")
    (394, 606)

    Source: RMED1 and Double Thompson Sampling are their authors'; to go from one to the other is
    our own idea, the evidence for it that of Howard et al. (`streamduel.preference.evidence`).
    """

    name = "auto"
    summary = "RMED1 until no arm can beat all others, then Double Thompson Sampling; no horizon"
    paper = "our own, of RMED1 (Komiyama et al., COLT 2015) and D-TS (Wu and Liu, NIPS 2016)"
    seeks = "copeland"

    delta = Real(
        symbol="δ",
        default=0.01,
        above=0,
        below=1,
        meaning="probability of giving up a Condorcet winner that is put up with",
    )

    def _begin(self) -> None:
        self._inner: Policy = self._on_the_same_counts(RMED1)
        self._switched = False
        self._look_at = 1  # at so many duels of different arms
        self._no_sooner = 0  # before so many duels in all, they cannot be so many

    def _on_the_same_counts(self, kind: type[Policy]) -> Policy:
        """A policy of another kind that shares this one's counts, generator and order of arms."""
        inner = kind.__new__(kind)
        inner.n_arms = self.n_arms
        inner._parameters = kind.check_parameters({}, self.n_arms)
        inner._counts = self._counts
        inner._generator = self._generator
        inner._standing = self._standing
        inner._begin()
        return inner

    @property
    def stage(self) -> str:
        """The algorithm at work: "rmed1", or "double_thompson" after the switch."""
        return self._inner.name

    def _choose(self, t: int) -> tuple[int, int]:
        if not self._switched and self._counts.duels >= self._no_sooner:
            self._look()
        return self._inner._choose(t)

    def _look(self) -> None:
        """If it is time, see whether there may still be a Condorcet winner; if not, go over.

        Duels of an arm with itself do not count: they teach nothing, and a run of them that is
        foreseen must come to the same as one by one.
        """
        informative = int(self.wins.sum())
        if informative >= self._look_at:
            if not condorcet_winner_possible(self.wins, self.delta):
                self._go_over()
            self._look_at = self._next_look(informative)
        self._no_sooner = self._counts.duels + self._look_at - informative

    def _next_look(self, informative: int) -> int:
        """How many duels of different arms there are to be when it looks again.

        A look costs O(K²): one in K duels adds to each of them about as much as a step of RMED1,
        and less and less later on. What a per cent more of duels adds to the evidence is little.
        """
        return informative + max(self.n_arms, informative // 100)

    def _go_over(self) -> None:
        self._inner = self._on_the_same_counts(DoubleThompson)
        self._switched = True

    # A stretch of different pairs is not foreseen (`_foresee`): after each of them it may be time
    # to go over.

    def _times_alone(self, arm: int, t: int, most: int) -> int:
        return self._inner._times_alone(arm, t, most)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._inner._mark_in_flight(first, second, in_flight)

    def _take_up(self, first: int, second: int) -> None:
        self._inner._take_up(first, second)

    def _take_up_many(self, first: Integers, second: Integers) -> None:
        self._inner._take_up_many(first, second)

    def candidates(self) -> int:
        """How many arms the algorithm at work has not ruled out."""
        return self._inner.candidates()

    def _own_state(self) -> dict[str, Any]:
        return {
            "switched": self._switched,
            "look_at": self._look_at,
            "inner": self._inner._own_state(),
        }

    def _restore(self, own: Mapping[str, Any]) -> None:
        switched, look_at, inner = own["switched"], own["look_at"], own["inner"]
        if type(switched) is not bool:
            raise PolicyError(f"switched must be true or false (found {switched!r}).")
        latest = self._next_look(int(self.wins.sum()))
        if type(look_at) is not int or not 1 <= look_at <= latest:
            raise PolicyError(f"look_at must be an integer from 1 to {latest} (found {look_at!r}).")
        if not isinstance(inner, Mapping):
            raise PolicyError("a state of policy 'auto' must be a mapping in 'inner'.")
        if switched:
            self._go_over()
        self._inner._restore(inner)
        self._look_at = look_at
