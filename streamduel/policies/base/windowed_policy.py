"""Policies that may forget: with a window, they look at the recent duels alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamduel.errors import PolicyError
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.parameter import Whole
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import WinCounts
from streamduel.preference.recent_counts import BLOCKS, RecentCounts


class Window(Whole):
    """τ, for the policies that may forget; off unless it is given."""

    def __init__(self) -> None:
        super().__init__(
            symbol="τ",
            at_least=BLOCKS,
            optional=True,
            meaning="look at about so many recent duels alone, because preferences drift",
            reason=f"duels are forgotten in {BLOCKS} parts of it",
        )


class WindowedPolicy(Policy):
    """With `window`, the algorithm sees nothing but the recent duels; without, it is as published.

    Users change, and so do rankers: what a pair's duels said a month ago may be wrong today. An
    algorithm that goes by all duels doubts its champion the more seldom the longer it has run, and
    is the later to notice a change. With a window τ it goes by the last τ duels, or a little fewer
    (`RecentCounts`), as in sliding-window UCB: the counts are those of the recent duels, and t is
    their number plus 1, so that bonuses have ln min(t, τ) in place of ln t. It never stops
    exploring, and that is the price: the regret grows in proportion to time, the slower the larger
    the window is.

    The champion beats the most arms in the recent duels; pairs that have not met of late count with
    all their duels. Otherwise, when an arm has been served alone for a whole window, as in a pause,
    any arm could be champion.

    `wins` and `duels` are about all duels, with a window, too: they are what happened.

    "Recent" is about the order in which duels are told: with a window, outcomes that come in
    another order lead to other choices. Without one they do not.

    A policy of the family declares `window = Window()`, makes what it keeps besides the counts from
    these in `_begin`, and loses nothing of the rest between `_own_state` and `_restore`: whenever
    duels have been forgotten, it is made anew in this way.

    Source: Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit
    Problems", ALT 2011 (SW-UCB); arXiv:0805.3415.
    """

    _recent: RecentCounts | None = None

    def _counts_of(self, state: Mapping[str, Any] | None) -> WinCounts:
        window = self._parameters.get("window")
        if window is None:
            return super()._counts_of(state)
        recent = (
            RecentCounts(self.n_arms, window) if state is None else RecentCounts.from_state(state)
        )
        if recent.window != window:
            raise PolicyError(
                f"counts.window must be policy.window, {window} (found {recent.window})."
            )
        self._recent = recent
        return recent

    @property
    def wins(self) -> Floats:
        """(K, K), read-only and live: [i, j] is how often i beat j, whenever that was."""
        return self._counts.wins if self._recent is None else self._recent.all_time.wins

    @property
    def duels(self) -> int:
        """How many duels were observed, forgotten ones included."""
        return self._counts.duels if self._recent is None else self._recent.all_time.duels

    def _leader(self) -> int:
        if self._recent is None:
            return super()._leader()
        if self._champion_turn != self._recent.turns:
            rank = self._recent.last_known_beats() * self.n_arms + self._standing
            self._champion = int(rank.argmax())
            self._champion_turn = self._recent.turns
        return self._champion

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        # When a block is full, duels are forgotten, and the next choice may be another.
        return super()._foresee(t, most if self._recent is None else min(most, self._recent.room))

    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        if self._recent is None or count < self._recent.room:
            super()._observe_one(first, second, first_wins, count)
        else:
            self._recent.add_one(first, second, first_wins, count)
            self._begin_anew()

    def _observe_many(self, duels: Duels) -> None:
        told = len(duels.first) if duels.count is None else int(duels.count.sum())
        if self._recent is None or told < self._recent.room:
            super()._observe_many(duels)
        else:
            self._recent.add(duels.first, duels.second, duels.first_wins, duels.count)
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Make all that is kept besides the counts from these, as they are now."""
        own = self._own_state()
        self._begin()
        self._restore(own)
