"""Policies that may forget: with a window, they use the recent duels only."""

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
    """τ, for policies that may forget; off unless it is given."""

    def __init__(self) -> None:
        super().__init__(
            symbol="τ",
            at_least=BLOCKS,
            optional=True,
            meaning="use about this many recent duels only, because preferences drift",
            reason=f"duels are forgotten in {BLOCKS} parts of it",
        )


class WindowedPolicy(Policy):
    """With `window`, the algorithm sees the recent duels only; without, it is as published.

    Users change, and so do rankers: the duels of a pair a month ago may be wrong today. An
    algorithm that uses all duels explores less the longer it has run, and notices a change later.
    With a window τ it uses the last τ duels, or a few less (`RecentCounts`), as in sliding-window
    UCB: the counts are those of the recent duels, and t is their number plus 1, so that bonuses
    have ln min(t, τ) instead of ln t. It never stops exploring; therefore the regret grows in
    proportion to time, more slowly with a larger window.

    The champion beats the most arms in the recent duels; pairs without recent duels count with all
    their duels. Otherwise any arm could be champion after one arm has been served alone for a whole
    window, as in a pause.

    `wins` and `duels` count all duels, also with a window.

    "Recent" refers to the order in which outcomes are observed: with a window, outcomes in another
    order lead to other choices. Without a window they do not.

    A policy of this family declares `window = Window()`. Whenever duels have been forgotten, what
    it keeps is rebuilt by `_begin` from the counts, and restored from its state.

    Source: Garivier and Moulines, "On Upper-Confidence Bound Policies for Switching Bandit
    Problems", ALT 2011 (SW-UCB); arXiv:0805.3415.
    """

    _recent: RecentCounts | None = None

    def _make_counts(self, state: Mapping[str, Any] | None) -> WinCounts:
        window = self._parameters.get("window")
        if window is None:
            return super()._make_counts(state)
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
        """(K, K), read-only and live: [i, j] is how often i beat j in all duels."""
        return self._counts.wins if self._recent is None else self._recent.all_time.wins

    @property
    def duels(self) -> int:
        """How many duels were observed, forgotten ones included."""
        return self._counts.duels if self._recent is None else self._recent.all_time.duels

    def _leader(self) -> int:
        if self._recent is None:
            return super()._leader()
        if self._champion_turn != self._recent.turns:
            rank = self._recent.last_known_beats() * self.n_arms + self._priority
            self._champion = int(rank.argmax())
            self._champion_turn = self._recent.turns
        return self._champion

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        # When a block is full, duels are forgotten, and the next choice may differ.
        room = limit if self._recent is None else min(limit, self._recent.room)
        return super()._choose_ahead(t, room)

    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        if self._recent is None or count < self._recent.room:
            super()._observe_one(first, second, first_wins, count)
        else:
            self._recent.add_one(first, second, first_wins, count)
            self._rebuild()

    def learn(self, duels: Duels) -> None:
        """As `Policy.learn`; when duels are forgotten, what is kept is rebuilt."""
        observed = len(duels.first) if duels.count is None else int(duels.count.sum())
        if self._recent is None or observed < self._recent.room:
            super().learn(duels)
        else:
            self._recent.add(duels.first, duels.second, duels.first_wins, duels.count)
            self._rebuild()

    def _rebuild(self) -> None:
        """Rebuild everything that follows from the counts, after duels have been forgotten."""
        saved = self.save()
        self._start()
        self.restore(saved)
