"""CCB: Copeland Confidence Bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.copeland_bounds import CopelandBounds
from streamduel.preference.extremes import largest_at
from streamduel.preference.logarithm import ln

_BLOCK: Final = 4096
"""As many draws of a champion are foreseen at once; it bounds the memory that takes."""


class CCB(Policy):
    """Finds a Copeland winner, an arm that beats the most others, with O(K² + K ln T) regret.

    There always is one, also when no arm beats all others, where RUCB goes on exploring for ever.
    An arm beats at most as many as its upper bounds allow and at least as many as its lower bounds
    prove. The champion c is drawn from the arms that may beat the most; its challenger d is, among
    the arms of which it is open whether c beats them, the one most likely to beat c. When nothing
    is open about c, it meets itself, which costs nothing.

    Two kinds of memory make it quick. B holds the arms that may have been the winner throughout;
    they are preferred as champions. B^i holds arms that once surely beat i, as many as it takes to
    prove i no winner, one more than the losses L_C of a winner; they are preferred as challengers
    of i, so that i is proven no winner by them alone, again and again, rather than by all K arms.

    Where the paper leaves something open: x/0 := 1, so an unseen pair is open and its upper bound
    is 2. t is the number of duels seen plus 1. The parts of line 9 follow one another in the order
    A, B, C; B refreshes the B^i of an arm that it removes; C takes the arms of C_t together, since
    they set the same L_C. Line 13: if nothing on the shortlist is open, the challenger comes from
    all arms. A d that ties with c is another arm; c itself is taken when it is the only maximum,
    which is when nothing is open about it.

    Draws from the generator, each only if it can matter: the cuts of line 9C, arm by arm; the coin
    of line 10 and, if it falls so, the pair; the coin of line 11; c; the coin of line 13; d among
    ties. So line 10 takes no coin while no pair on the shortlists is open, and in the long run,
    when nothing is open about any arm of C_t, a step draws no more than c, and nothing at all if
    the winner is unique. `foresee` goes through such steps at once, up to the next at which a bound
    crosses 1/2.

    Duels of pairs that were not asked for count like all others. Line 9 draws its conclusions when
    a pair is asked for, from the duels seen until then: not from those in flight, which only narrow
    the bounds by which the further pairs of the same call are chosen.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        alpha: α, above 1/2: the bonus is sqrt(α ln t / n). Larger explores more.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = CCB(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 161)

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015; line
    numbers are those of Algorithm 1 in arXiv:1506.00312.
    """

    name = "ccb"
    summary = "finds an arm that beats the most others; needs no Condorcet winner and no horizon"
    paper = "Zoghi et al., Copeland Dueling Bandits, NIPS 2015"
    seeks = "copeland"

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="the regret bounds of CCB hold only above it",
    )

    def _begin(self) -> None:
        self._bounds = CopelandBounds(self._counts)  # line 1 (and W, in the counts)
        self._reset()
        self._waiting = False  # whether duels are in flight
        # What lines 7 to 10 find, good until a bound crosses 1/2.
        self._settled_turn = -1
        self._optimists: list[int] = []
        self._preferred: list[int] = []
        self._open_pairs = np.empty(0, dtype=np.int64)  # i · K + j
        self._open_lists: Booleans = np.zeros(self.n_arms, dtype=np.bool_)
        self._at_rest = False

    def _reset(self) -> None:
        """Lines 2 to 4."""
        self._best: Booleans = np.ones(self.n_arms, dtype=np.bool_)  # B
        self._shortlists: Booleans = np.zeros(
            (self.n_arms, self.n_arms), dtype=np.bool_
        )  # [i]: B^i
        self._losses = self.n_arms  # L_C

    def _choose(self, t: int) -> tuple[int, int]:
        scale = self.alpha * ln(t)
        self._look(scale)
        return self._pick(scale)

    def _pick(self, scale: float) -> tuple[int, int]:
        """Lines 10 to 13."""
        draw = self._generator
        n_open = len(self._open_pairs)
        if n_open and draw.coin(1, 4):  # line 10
            return divmod(self._open_pairs.item(draw.below(n_open)), self.n_arms)
        champion = self._draw_champion()
        return champion, self._challenger(champion, scale)

    def _look(self, scale: float) -> None:
        """Lines 6 to 9. Nothing changes while no bound crosses 1/2, since line 9 is idempotent."""
        bounds = self._bounds
        bounds.advance(scale)  # lines 6 and 7
        if bounds.turns == self._settled_turn:
            return
        losses = bounds.losses
        self._optimists = (losses == losses[losses.argmin()]).nonzero()[0].tolist()  # line 8
        # Only a B that ran empty needs another look at the same bounds.
        settled = self._waiting or self._update_hypotheses()
        self._settled_turn = bounds.turns if settled else -1
        self._preferred = [arm for arm in self._optimists if self._best[arm]]
        listed_and_open = self._shortlists & bounds.undecided
        self._open_pairs = listed_and_open.reshape(-1).nonzero()[0]
        self._open_lists = np.logical_or.reduce(listed_and_open, axis=1)
        # Every arm of C_t is proven a winner, and by line 9C in B: of each step, line 12 is left.
        in_question = len(self._open_pairs) or bounds.undecided[self._optimists].any()
        self._at_rest = settled and not in_question

    def _update_hypotheses(self) -> bool:
        """Line 9; whether to do it again would change nothing."""
        bounds, others = self._bounds, self.n_arms - 1
        # A. Reset disproven hypotheses.
        if np.logical_and(self._shortlists, bounds.beats).any():
            self._reset()
        # B. Remove non-Copeland winners.
        worse = self._best & (others - bounds.losses < bounds.wins[bounds.wins.argmax()])
        for arm in worse.nonzero()[0].tolist():
            self._best[arm] = False
            if np.count_nonzero(self._shortlists[arm]) != self._losses + 1:
                self._shortlists[arm] = bounds.beats[:, arm]
        settled = bool(self._best.any())
        if not settled:
            self._reset()
        # C. Add Copeland winners.
        proven = [arm for arm in self._optimists if not bounds.undecided[arm].any()]
        if proven:
            self._losses = bounds.losses.item(proven[0])
            self._best[proven] = True
            self._shortlists[proven] = False
            self._cut_shortlists(self._losses + 1)
        return settled

    def _cut_shortlists(self, size: int) -> None:
        """Line 9C: shorter ones are emptied, longer ones cut at random."""
        sizes = self._shortlists.sum(axis=1)
        self._shortlists[sizes < size] = False
        for arm in (sizes > size).nonzero()[0].tolist():
            listed = self._shortlists[arm].nonzero()[0]
            order = self._generator.permutation(len(listed))
            self._shortlists[arm, listed[order[size:]]] = False

    def _draw_champion(self) -> int:
        """Lines 11 and 12: c."""
        arms, preferred = self._optimists, self._preferred
        if preferred and len(preferred) < len(arms) and self._generator.coin(2, 3):
            arms = preferred
        return arms[self._generator.below(len(arms))]

    def _challenger(self, champion: int, scale: float) -> int:
        """Line 13: d = argmax u_jc.

        Of the arms j with l_jc ≤ 1/2, those of which it is open whether c beats them have
        u_jc ≥ 1/2, and those which c surely beats have less than the 1/2 of c itself. So d is among
        the former, and it is c when there are none. On c's shortlist are none that c surely beats.
        """
        bounds = self._bounds
        if bounds.wins.item(champion) + bounds.losses.item(champion) == self.n_arms - 1:
            return champion
        among = bounds.undecided[champion]
        if self._open_lists.item(champion) and self._generator.coin(1, 2):
            among = among & self._shortlists[champion]
        upper = np.where(among, bounds.against(champion, scale), -1.0)
        tied = largest_at(upper)
        return tied[self._generator.below(len(tied))]

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        scale = self.alpha * ln(t)
        self._look(scale)
        if not self._at_rest:
            pairs, times = [self._pick(scale)], [1]
        elif len(self._optimists) == 1:
            pairs, times = [(self._optimists[0],) * 2], [self._steps_without_turn(t, most)]
        else:
            times = [1] * min(self._steps_without_turn(t, most), _BLOCK)
            pairs = [(self._draw_champion(),) * 2 for _ in times]
        return np.array(pairs, dtype=np.int64), np.array(times, dtype=np.int64)

    def _steps_without_turn(self, t: int, most: int) -> int:
        """How many steps in a row, from t on and at most `most`, no bound crosses 1/2."""
        turn, few, many = self._bounds.next_turn, 1, most
        if self.alpha * ln(t + most - 1) < turn:
            return most
        while few < many:
            middle = (few + many + 1) // 2
            if self.alpha * ln(t + middle - 1) < turn:
                few = middle
            else:
                many = middle - 1
        return few

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._waiting = in_flight > 0
        self._bounds.refresh(first, second, in_flight)
        if not in_flight:
            self._settled_turn = -1

    def _take_up(self, first: int, second: int) -> None:  # line 14 has counted a win
        self._bounds.refresh(first, second)

    def _take_up_many(self, first: Integers, second: Integers) -> None:
        if (first != second).any():
            self._bounds.refresh_many()

    def candidates(self) -> int:
        """How many arms may still beat as many others as some arm surely does."""
        bounds = self._bounds
        bounds.advance(self.alpha * ln(self._counts.duels + 1))
        surely = bounds.wins.max()
        return int(np.count_nonzero(self.n_arms - 1 - bounds.losses >= surely))

    def _own_state(self) -> dict[str, Any]:
        return {
            "best": self._best.nonzero()[0].tolist(),
            "shortlists": [row.nonzero()[0].tolist() for row in self._shortlists],
            "losses": self._losses,
        }

    def _restore(self, own: Mapping[str, Any]) -> None:
        best, shortlists, losses = own["best"], own["shortlists"], own["losses"]
        if type(losses) is not int or not 0 <= losses <= self.n_arms:
            raise PolicyError(f"a winner's losses must be from 0 to K (found {losses!r}).")
        if not isinstance(shortlists, list) or len(shortlists) != self.n_arms or not best:
            raise PolicyError("a state of policy 'ccb' must hold some best arms and K shortlists.")
        self._losses = losses
        self._best = self._marked(best)
        self._shortlists = np.array([self._marked(arms) for arms in shortlists])
        if self._shortlists.diagonal().any():
            raise PolicyError("an arm must not be on its own shortlist.")

    def _marked(self, arms: object) -> Booleans:
        """Which arms a list from a state names."""
        if not isinstance(arms, list) or any(type(arm) is not int for arm in arms):
            raise PolicyError(f"arms must be a list of integers (found {arms!r}).")
        if arms != sorted(set(arms)) or not set(arms) <= set(range(self.n_arms)):
            raise PolicyError(f"arms must be from 0 to K - 1, ascending (found {arms!r}).")
        marked = np.zeros(self.n_arms, dtype=np.bool_)
        marked[arms] = True
        return marked
