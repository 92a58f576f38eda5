"""RMED2FH: RMED2 for a fixed horizon."""

from __future__ import annotations

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Horizon
from streamduel.policies.base.state import Arm
from streamduel.policies.rmed1 import RMED1State
from streamduel.policies.rmed2 import RMED2


class RMED2FHState(RMED1State):
    """The opponent of each arm, once it is fixed."""

    kept: list[Arm | None] | None


class RMED2FH(RMED2):
    """RMED2 for a known horizon: explores first, and then keeps each arm's opponent.

    All pairs duel ⌈α ln ln T⌉ times first; b(l) is then computed for every arm l and kept. While l
    is ahead of it, Algorithm 2 chooses. The rest is as in `RMED2`; in the authors' experiments it
    is slightly better than RMED1 at large T.

    Where the paper leaves something open: while outcomes of the first duels are missing, b is
    not fixed, and Algorithm 2 chooses; ⌈α ln ln T⌉ is at least 1.

    Draws from the generator, each only if there is more than one choice: when b is fixed, i* and
    then b(l) of each arm in turn; at each step as RMED1.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = RMED2FH(3, seed=7, horizon=1000), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 108)

    Source: as for RMED1; Algorithms 1 and 3.
    """

    name = "rmed2fh"
    summary = "RMED2 that explores first and then keeps its opponents; needs the horizon"
    paper = "Komiyama et al., Regret Lower Bound and Optimal Algorithm, COLT 2015 (RMED2FH)"

    state_type = RMED2FHState

    horizon = Horizon()

    def _begin(self) -> None:
        super()._begin()
        self._first_meetings = super()._needed(self.horizon)
        self._kept: list[int | None] | None = None  # b(l) of every arm, once it is fixed

    def _needed(self, t: int) -> int:  # noqa: ARG002 - depends on T alone
        return self._first_meetings

    def _due(self, times: int) -> tuple[int, int] | None:
        pair = super()._due(times)
        if pair is None and self._kept is None and not self._in_flight:
            likeliest = self._likeliest()
            self._kept = [self._cheapest_opponent(arm, likeliest) for arm in range(self.n_arms)]
        return pair

    def _opponent(self, arm: int, t: int) -> int:
        likeliest = self._likeliest()
        kept = self._kept[arm] if self._kept is not None else None
        if (
            kept is not None
            and self.wins.item(arm, kept) <= self.wins.item(kept, arm)
            and self._suffices(arm, likeliest, kept, t)
        ):
            return kept
        return self._strongest_opponent(arm, likeliest)

    def _restored(self) -> None:
        super()._restored()
        kept = self._kept
        if kept is not None and (
            len(kept) != self.n_arms or any(arm == opponent for arm, opponent in enumerate(kept))
        ):
            raise PolicyError("a state of policy 'rmed2fh' must keep an opponent for each arm.")
