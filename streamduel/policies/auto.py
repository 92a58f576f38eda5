"""auto: RMED1 until no arm can beat all others, then Double Thompson Sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.errors import PolicyError
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Count, State
from streamduel.policies.double_thompson import DoubleThompson
from streamduel.policies.rmed1 import RMED1
from streamduel.preference.elimination import condorcet_winner_possible


class AutoState(State):
    """Whether it has switched, when it checks next, and the state of the algorithm at work."""

    switched: bool
    look_at: Count
    inner: dict[str, Any]


class Auto(Policy):
    """RMED1 while an arm may beat all others; Double Thompson Sampling once surely none does.

    RMED1 is fast and has little regret if there is a Condorcet winner. If there is none, its regret
    grows linearly. So when every arm has surely lost to another one (`condorcet_winner_possible`),
    Double Thompson Sampling continues from the same counts, and finds a Copeland winner. If there
    is a Condorcet winner, the probability that it ever switches is at most δ, although it checks
    repeatedly; Double Thompson Sampling finds that winner, too. It does not switch back, except
    with a change of arms, after which it starts with RMED1 from the counts. `stage` is the name of
    the algorithm at work.

    It checks whether to switch when it is asked for a pair, if there have been 1 % more duels of
    different arms since the last check, and at least K. The number of duels needed depends on the
    gaps: about 460 for each pair of a cycle in which arms win 60 % of their duels, 14,500 at 52 %.

    `TopTwo` supersedes it: it has less regret with and without a Condorcet winner, because it does
    not wait for a switch. Among five close rankers without a winner the switch came after 55,000
    duels or later (five runs), and until it comes the regret is that of RMED1. `auto` stays for
    experiments that run with it.

    Both algorithms have their default parameters, treat delayed outcomes as they do alone, and draw
    from the generator what they draw alone; a check draws nothing.

    Args:
        delta: δ, between 0 and 1; smaller switches with more evidence, and later.

    >>> import numpy as np
    >>> cycle = np.array([[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]])
    >>> policy, users = Auto(n_arms=3, seed=7), np.random.RandomState(7)
    >>> stages = []
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < cycle[first, second]))
    ...     stages.append(policy.stage)
    >>> stages.count("rmed1"), stages.count("double_thompson")
    (349, 651)

    Source: RMED1 and Double Thompson Sampling are their authors'; the switch is our
    own, its evidence that of Howard et al. (`streamduel.preference.evidence`).
    """

    name = "auto"
    summary = "RMED1 until no arm can beat all others, then Double Thompson Sampling; no horizon"
    paper = "our own, from RMED1 (Komiyama et al., COLT 2015) and D-TS (Wu and Liu, NIPS 2016)"
    seeks = "copeland"

    state_type = AutoState

    delta = Real(
        symbol="δ",
        default=0.01,
        above=0,
        below=1,
        meaning="tolerated probability of abandoning a Condorcet winner",
    )

    def _begin(self) -> None:
        self._inner: Policy = self._on_same_counts(RMED1)
        self._switched = False
        self._look_at = 1  # the number of duels of different arms at which it checks next
        self._no_sooner = 0  # the number of all duels before which there cannot be as many

    @property
    def stage(self) -> str:
        """The algorithm at work: "rmed1", or "double_thompson" after the switch."""
        return self._inner.name

    def _choose(self, t: int) -> tuple[int, int]:
        if not self._switched and self._counts.duels >= self._no_sooner:
            self._check_switch()
        return self._inner._choose(t)

    def _check_switch(self) -> None:
        """If a check is due, switch unless there may be a Condorcet winner.

        Duels of an arm with itself do not count: they have no winner, and many of them proposed
        ahead must have the same effect as one by one.
        """
        informative = int(self.wins.sum())
        if informative >= self._look_at:
            if not condorcet_winner_possible(self.wins, self.delta):
                self._switch()
            self._look_at = self._next_check(informative)
        self._no_sooner = self._counts.duels + self._look_at - informative

    def _next_check(self, informative: int) -> int:
        """The number of duels of different arms at which it checks next.

        A check costs O(K²): one per K duels costs about as much per duel as a step of RMED1, and
        less later on. One per cent more duels adds little evidence.
        """
        return informative + max(self.n_arms, informative // 100)

    def _switch(self) -> None:
        self._inner = self._on_same_counts(DoubleThompson)
        self._switched = True

    # Different pairs are not proposed ahead: after each of them it may be time to switch.

    def _duels_alone(self, arm: int, t: int, limit: int) -> int:
        return self._inner._duels_alone(arm, t, limit)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._inner._mark_in_flight(first, second, in_flight)

    def _learned(self, first: int, second: int, first_wins: float, count: int) -> None:
        self._inner._learned(first, second, first_wins, count)

    def _learned_many(self, duels: Duels) -> None:
        self._inner._learned_many(duels)

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: of the algorithm at work."""
        return self._inner.explain(first, second, arms)

    def candidates(self) -> int:
        """How many arms the algorithm at work has not ruled out."""
        return self._inner.candidates()

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Set what `save` returned; `Policy.restore` with the algorithm at work.

        Raises:
            PolicyError: it does not fit the counts, or is not a state of this policy.
        """
        if saved.get("switched") is True:
            self._switch()
        super().restore(saved)

    def _restored(self) -> None:
        latest = self._next_check(int(self.wins.sum()))
        if not 1 <= self._look_at <= latest:
            raise PolicyError(
                f"look_at must be an integer from 1 to {latest} (found {self._look_at})."
            )
