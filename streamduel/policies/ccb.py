"""CCB: Copeland Confidence Bound."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from msgspec import Meta

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Booleans, Integers, places_of_largest
from streamduel.preference.copeland_bounds import CopelandBounds
from streamduel.preference.logarithm import ln
from streamduel.preference.verdict import percent

_BLOCK: Final = 4096
"""The largest number of draws of a champion proposed ahead; it bounds the memory."""


class CCBState(State):
    """B, the B^i, and L_C."""

    best: Annotated[list[Arm], Meta(min_length=1)]
    shortlists: list[list[Arm]]
    losses: Count


class CCB(Policy):
    """Finds a Copeland winner, an arm that beats the most others, with O(K² + K ln T) regret.

    There always is one, also when no arm beats all others, where RUCB never stops exploring. An arm
    beats at most as many as its upper bounds allow and at least as many as its lower bounds prove.
    The champion c is drawn from the arms that may beat the most; its challenger d is, among the
    arms whose pair with c is undecided, the one most likely to beat c. When all pairs of c are
    decided, it duels with itself, which has no regret.

    Two kinds of memory make it fast. B holds the arms that may have been the winner throughout;
    they are preferred as champions. B^i holds arms that once surely beat i, as many as it takes to
    prove that i is no winner, one more than the losses L_C of a winner; they are preferred as
    challengers of i, so that these few arms prove it each time, rather than all K arms.

    Where the paper leaves something open: x/0 := 1, so an unseen pair is undecided and its upper
    bound is 2. t is the number of duels seen plus 1. The parts of line 9 follow one another in the
    order A, B, C; B refreshes the B^i of an arm that it removes; C takes the arms of C_t together,
    since they set the same L_C. Line 13: if no pair with the shortlist is undecided, the challenger
    comes from all arms. A d that ties with c is another arm; c itself is chosen when it is the only
    maximum, which is when all its pairs are decided.

    Draws from the generator, each only if it can matter: the cuts of line 9C, arm by arm; the coin
    of line 10 and, if it falls so, the pair; the coin of line 11; c; the coin of line 13; d among
    ties. So line 10 takes no coin while no pair on the shortlists is undecided, and in the long
    run, when all pairs of the arms of C_t are decided, a step draws only c, and nothing if the
    winner is unique. `propose_ahead` takes such steps together, up to the next at which a bound
    crosses 1/2.

    Unproposed duels count like all others. Line 9 draws its conclusions when a pair is asked for,
    from the duels observed until then. Duels in flight only narrow the bounds by which the further
    pairs of the same call are chosen.

    Args:
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

    state_type = CCBState

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="the regret bounds of CCB hold only above it",
    )

    def _begin(self) -> None:
        self._bounds = self._track(CopelandBounds(self._counts))  # line 1 (and W, in the counts)
        self._reset()
        self._any_in_flight = False  # whether duels are in flight
        # The results of lines 7 to 10, valid until a bound crosses 1/2.
        self._settled_turn = -1
        self._optimists: list[int] = []
        self._preferred: list[int] = []
        self._open_pairs = np.empty(0, dtype=np.int64)  # i · K + j
        self._open_lists: Booleans = np.zeros(self.n_arms, dtype=np.bool_)
        self._at_rest = False

    def _reset(self) -> None:
        """Lines 2 to 4."""
        self._best: Booleans = np.ones(self.n_arms, dtype=np.bool_)  # B
        # [i]: B^i
        self._shortlists: Booleans = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        self._losses = self.n_arms  # L_C

    def _choose(self, t: int) -> tuple[int, int]:
        scale = self.alpha * ln(t)
        self._update(scale)
        return self._pick(scale)

    def _pick(self, scale: float) -> tuple[int, int]:
        """Lines 10 to 13."""
        draw = self._generator
        n_open = len(self._open_pairs)
        if n_open and draw.coin(1, 4):  # line 10
            return divmod(self._open_pairs.item(draw.below(n_open)), self.n_arms)
        champion = self._draw_champion()
        return champion, self._challenger(champion, scale)

    def _update(self, scale: float) -> None:
        """Lines 6 to 9. Nothing changes while no bound crosses 1/2, since line 9 is idempotent."""
        bounds = self._bounds
        bounds.advance(scale)  # lines 6 and 7
        if bounds.turns == self._settled_turn:
            return
        losses = bounds.losses
        self._optimists = (losses == losses[losses.argmin()]).nonzero()[0].tolist()  # line 8
        # Only if B became empty, the same bounds need another update.
        settled = self._any_in_flight or self._update_hypotheses()
        self._settled_turn = bounds.turns if settled else -1
        self._preferred = [arm for arm in self._optimists if self._best[arm]]
        listed_and_open = self._shortlists & bounds.undecided
        self._open_pairs = listed_and_open.reshape(-1).nonzero()[0]
        self._open_lists = np.logical_or.reduce(listed_and_open, axis=1)
        # Every arm of C_t is proven a winner, and in B by line 9C: only line 12 is left.
        in_question = len(self._open_pairs) or bounds.undecided[self._optimists].any()
        self._at_rest = settled and not in_question

    def _update_hypotheses(self) -> bool:
        """Line 9; returns whether repeating it would change nothing."""
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
        return self._generator.choose(arms)

    def _challenger(self, champion: int, scale: float) -> int:
        """Line 13: d = argmax u_jc.

        Of the arms j with l_jc ≤ 1/2, those whose pair with c is undecided have u_jc ≥ 1/2, and
        those that c surely beats have less than the 1/2 of c itself. So d is one of the former, or
        c if there are none. c surely beats no arm on its shortlist.
        """
        bounds = self._bounds
        if bounds.wins.item(champion) + bounds.losses.item(champion) == self.n_arms - 1:
            return champion
        among = bounds.undecided[champion]
        if self._open_lists.item(champion) and self._generator.coin(1, 2):
            among = among & self._shortlists[champion]
        upper = np.where(among, bounds.against(champion, scale), -1.0)
        tied = places_of_largest(upper)
        return self._generator.choose(tied)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        scale = self.alpha * ln(t)
        self._update(scale)
        if not self._at_rest:
            pairs, times = [self._pick(scale)], [1]
        elif len(self._optimists) == 1:
            pairs, times = [(self._optimists[0],) * 2], [self._steps_without_turn(t, limit)]
        else:
            times = [1] * min(self._steps_without_turn(t, limit), _BLOCK)
            pairs = [(self._draw_champion(),) * 2 for _ in times]
        return np.array(pairs, dtype=np.int64), np.array(times, dtype=np.int64)

    def _steps_without_turn(self, t: int, limit: int) -> int:
        """In how many steps from t on, up to `limit`, no bound crosses 1/2."""
        turn, later = self._bounds.next_turn, range(t + 1, t + limit)
        return 1 + bisect_left(later, True, key=lambda step: self.alpha * ln(step) >= turn)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        super()._mark_in_flight(first, second, in_flight)
        self._any_in_flight = in_flight > 0
        if not in_flight:
            self._settled_turn = -1

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """As `Algorithm.explain`: by upper bounds."""
        losses = self._bounds.losses
        champion, rival = first, second
        if losses[second] < losses[first]:
            champion, rival = second, first
        scale = self.alpha * ln(self._counts.duels + 1)
        upper = min(1.0, self._bounds.against(champion, scale).item(rival))
        return (
            f"{arms[champion]} may beat {self.n_arms - 1 - losses.item(champion)} of "
            f"{self.n_arms - 1} others; whether {arms[rival]} beats it is undecided: by the upper "
            f"bound, it may win {percent(upper)} of their duels."
        )

    def candidates(self) -> int:
        """How many arms may beat as many others as some arm surely does."""
        bounds = self._bounds
        bounds.advance(self.alpha * ln(self._counts.duels + 1))
        surely = bounds.wins.max()
        return int(np.count_nonzero(self.n_arms - 1 - bounds.losses >= surely))

    def _restored(self) -> None:
        if self._losses > self.n_arms:
            raise PolicyError(f"a winner's losses must be from 0 to K (found {self._losses}).")
        if self._shortlists.diagonal().any():
            raise PolicyError("an arm must not be on its own shortlist.")
