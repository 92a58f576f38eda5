"""Codes: a duel as a small integer, so that a policy learns a thousand in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from streamduel.config.experiment import ExperimentSettings
from streamduel.interleaving.credit import ClickLike, ShownLike
from streamduel.preference.arrays import Floats, Integers
from streamduel.record_rules import Limits, contradiction, over_limit
from streamduel.records import (
    Click,
    Control,
    Duel,
    Duels,
    Impression,
    InputEvent,
    Interleaving,
    RankClick,
    Rejected,
    Side,
)
from streamduel.stream.join_state import OpenImpression
from streamduel.stream.roster import Roster

Pair = Duel | Duels | Interleaving | Impression
"""Events that name a pair of arms."""

NO_DUEL: Final = -1
"""The code of a record that is accepted and is no duel: a tie under `ties: drop`."""
SPECIAL: Final = -2
"""The code of a record that is handled individually, because it is not one duel: `duels`,
`impression`, `click` and `control`."""
OUTCOMES: Final = 3
FIRST_WINS: Final = (0.0, 1.0, 0.5)
"""The outcome for the first arm: b wins, a wins, a tie."""
_B_WINS, _A_WINS, TIE = 0, 1, 2
WINNERS: Final[tuple[Side | None, ...]] = ("b", "a", None)
"""The side that wins, by outcome."""

_CLICKS: Final[list[RankClick]] = []
"""A click on each rank: the same objects for all records, as many as a list has had ranks."""


class Coder:
    """Turns events into codes: (first arm · K + second arm) · 3 + outcome, or a negative one.

    The code of a plain `duel` is `firsts[a] + seconds[b] + winners[winner]`; of an arm with itself,
    a policy ignores the outcome. Another record has no entry in one of them, nor has any `duel`
    with a cap per client or segments, for which its other fields count, too.

    Args:
        settings: the experiment's.
        roster: its arms; after any change of it, call `renumber`.
        limits: bounds of a record.

    Attributes:
        plain: `firsts`, `seconds` and `winners`; always the same objects.
        by_code: first arm, second arm and outcome of every code, to look many up together.
    """

    __slots__ = (
        "_credit", "_drops_unclicked", "_is_plain", "_limits", "_max_ranks",
        "_roster", "_winners", "by_code", "plain",
    )  # fmt: skip

    def __init__(self, settings: ExperimentSettings, roster: Roster, limits: Limits) -> None:
        self._roster = roster
        self.limit(limits)
        self.plain: tuple[dict[str, int], dict[str, int], dict[str | None, int]] = {}, {}, {}
        self.configure(settings)

    def limit(self, limits: Limits) -> None:
        """Check records from now on against these limits."""
        self._limits, self._max_ranks = limits, limits.max_ranks

    def configure(self, settings: ExperimentSettings) -> None:
        """Credit records from now on by these settings."""
        self._is_plain = settings.max_per_client is None and not settings.segments
        self._credit = settings.credit.create()
        self._drops_unclicked = settings.no_click == "drop"
        tie = TIE if settings.ties == "half" else NO_DUEL
        self._winners: dict[str | None, int] = {"a": _A_WINS, "b": _B_WINS, "tie": tie}
        self.renumber()

    def renumber(self) -> None:
        """Compute all codes again, because arm indices have changed."""
        n_arms = len(self._roster.arms)
        self.by_code = _duels_by_code(n_arms)
        firsts, seconds, winners = self.plain
        firsts.clear()
        seconds.clear()
        winners.clear()
        if self._is_plain:
            winners.update((side, code) for side, code in self._winners.items() if code >= 0)
            for arm, index in self._roster.index.items():
                firsts[arm], seconds[arm] = index * n_arms * OUTCOMES, index * OUTCOMES

    def code(self, event: InputEvent) -> int:
        """The code of an event.

        Raises:
            Rejected: it names an unknown arm, or contradicts itself.
        """
        return self._CODERS[type(event)](self, event, self._roster.index)

    def check_at(self, event: InputEvent, offset: int) -> None:
        """Check an event against the arms that competed at its offset.

        Raises:
            Rejected: it named an unknown arm, or contradicts itself.
        """
        self._CODERS[type(event)](self, event, self._roster.known_at(offset))

    def _duel(self, event: Duel, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        outcome = TIE if event.a == event.b else self._winners.get(event.winner)
        if outcome is None:
            raise _contradiction(event)
        return _code(known, event, outcome)

    def _interleaving(self, event: Interleaving, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        chances, teams, given = event.chances, event.teams, event.clicks
        if len(teams) > self._max_ranks or len(given) > self._max_ranks or chances is not None:
            self._check_limits(event)
        if event.a == event.b or (chances is not None and len(chances) != len(teams)):
            raise _contradiction(event)
        if len(teams) > len(_CLICKS):
            _CLICKS.extend(map(RankClick, range(len(_CLICKS), len(teams))))
        try:
            clicks = [_CLICKS[it] if isinstance(it, int) else it for it in given]
            return _code(known, event, self._credited(event, clicks))
        except IndexError:
            raise _contradiction(event) from None

    def _pair(self, event: Duels | Impression, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        if isinstance(event, Impression):
            self._check_limits(event)
        code = self._special(event, known)
        if isinstance(event, Duels):
            self._check_limits(event)
        return code

    def _special(self, event: InputEvent, _known: Mapping[str, Any]) -> int:
        if problem := contradiction(event):
            raise Rejected("invalid_record", problem)
        return SPECIAL

    _CODERS: Final[Mapping[type, Callable[..., int]]] = {
        Duel: _duel,
        Interleaving: _interleaving,
        Duels: _pair,
        Impression: _pair,
        Click: _special,
        Control: _special,
    }

    def _check_limits(self, event: InputEvent) -> None:
        if problem := over_limit(event, self._limits):
            raise Rejected("invalid_record", problem)

    def _check_known(self, event: Pair, known: Mapping[str, Any]) -> None:
        if event.a not in known or event.b not in known:
            raise self._roster.unknown(event.b if event.a in known else event.a)

    def closed(self, impression: OpenImpression) -> int:
        """The code of an impression whose join window has closed."""
        index = self._roster.index
        if not {impression.a, impression.b} <= index.keys():
            return NO_DUEL  # an arm was retired since
        return _code(index, impression, self._credited(impression, impression.clicks))

    def _credited(self, shown: ShownLike, clicks: Sequence[ClickLike]) -> int:
        """The outcome of an impression, or `NO_DUEL`."""
        if not clicks and self._drops_unclicked:
            return NO_DUEL
        first_wins = self._credit(shown, clicks)
        return self._winners["tie" if first_wins == 0.5 else "a" if first_wins else "b"]


def _code(known: Mapping[str, Any], pair: Pair | OpenImpression, outcome: int) -> int:
    if outcome < 0:
        return NO_DUEL
    first, second = known[pair.a], known[pair.b]
    if first is None or second is None:
        return NO_DUEL  # of an earlier offset, where arms have no index
    return int((first * len(known) + second) * OUTCOMES + outcome)


def _contradiction(event: InputEvent) -> Rejected:
    return Rejected("invalid_record", contradiction(event) or "the record contradicts itself.")


def _duels_by_code(n_arms: int) -> tuple[Integers, Integers, Floats]:
    """First arm, second arm and outcome of every code, to look many up together."""
    pairs, outcomes = np.divmod(np.arange(n_arms * n_arms * OUTCOMES), OUTCOMES)
    first, second = np.divmod(pairs, n_arms)
    return first, second, np.array(FIRST_WINS)[outcomes]
