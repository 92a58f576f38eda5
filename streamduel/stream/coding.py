"""Codes: a duel as a small integer, so that a policy learns a thousand at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from streamduel.config.experiment import ExperimentSettings
from streamduel.config.model import LimitSettings
from streamduel.interleaving.credit import ClickLike, ShownLike
from streamduel.preference.arrays import Floats, Integers
from streamduel.record_rules import contradiction
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
)
from streamduel.stream.open_parts import OpenImpression
from streamduel.stream.roster import Roster

Pair = Duel | Duels | Interleaving | Impression
"""Events that name a pair of arms."""

NO_DUEL: Final = -1
"""The code of a record that is accepted and is no duel: a tie under `ties: drop`."""
SPECIAL: Final = -2
"""The code of a record that is handled individually, because it is not one duel: `duels`,
`impression`, `click` and `control`."""
MAX_CODES: Final = 4096
"""Codes of `duel` records that are kept: all of them for up to 36 arms; none with a cap per
client, or segments."""
OUTCOMES: Final = 3
FIRST_WINS: Final = (0.0, 1.0, 0.5)
"""The outcome for the first arm: b wins, a wins, a tie."""
_B_WINS, _A_WINS, TIE = 0, 1, 2


class Coder:
    """Turns events into codes: (first arm · K + second arm) · 3 + outcome, or a negative one.

    The code of a `duel` follows from a, b and winner: `codes[a][b][winner]` keeps it.

    Args:
        settings: the experiment's.
        roster: its arms; after any change of it, call `renumber`.
        limits: bounds of a record.

    Attributes:
        codes: of `duel` records seen before; always the same object.
        by_code: first arm, second arm and outcome of every code, to look many up at once.
    """

    __slots__ = (
        "_coders", "_credit", "_drops_unclicked", "_kept", "_max_codes", "_max_duels", "_max_ranks",
        "_roster", "_winners", "by_code", "codes",
    )  # fmt: skip

    def __init__(self, settings: ExperimentSettings, roster: Roster, limits: LimitSettings) -> None:
        self._roster = roster
        self._max_ranks, self._max_duels = limits.max_ranks, limits.max_duels_per_record
        self._coders: dict[type, Callable[[Any, Mapping[str, Any]], int]] = {
            Duel: self._duel,
            Interleaving: self._interleaving,
            Duels: self._pair,
            Impression: self._pair,
            Click: _special,
            Control: _special,
        }
        self.codes: dict[str, dict[str, dict[str | None, int]]] = {}
        self.configure(settings)

    def configure(self, settings: ExperimentSettings) -> None:
        """Credit what comes by these settings."""
        # Without kept codes, every `duel` takes the path that looks at its client and segment.
        is_plain = settings.max_per_client is None and not settings.segments
        self._max_codes = MAX_CODES if is_plain else 0
        self._credit = settings.credit.create()
        self._drops_unclicked = settings.no_click == "drop"
        tie = TIE if settings.ties == "half" else NO_DUEL
        self._winners: dict[str | None, int] = {"a": _A_WINS, "b": _B_WINS, "tie": tie}
        self.renumber()

    def renumber(self) -> None:
        """Discard all codes, because arm indices have changed."""
        self.codes.clear()
        self._kept = 0
        self.by_code = _duels_by_code(len(self._roster.arms))

    def code(self, event: InputEvent) -> int:
        """The code of an event.

        Raises:
            Rejected: it names an unknown arm, or contradicts itself.
        """
        return self._coders[type(event)](event, self._roster.index)

    def check_at(self, event: InputEvent, offset: int) -> None:
        """Check an event against the arms that competed at its offset.

        Raises:
            Rejected: it named an unknown arm, or contradicts itself.
        """
        self._coders[type(event)](event, self._roster.known_at(offset))

    def _duel(self, event: Duel, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        outcome = TIE if event.a == event.b else self._winners.get(event.winner)
        if outcome is None:
            raise _contradiction(event)
        code = _code(known, event, outcome)
        if known is self._roster.index and self._kept < self._max_codes:
            self._kept += 1
            self.codes.setdefault(event.a, {}).setdefault(event.b, {})[event.winner] = code
        return code

    def _interleaving(self, event: Interleaving, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        self._check_ranks(teams=event.teams, clicks=event.clicks, chances=event.chances)
        chances = event.chances
        if event.a == event.b or (chances is not None and len(chances) != len(event.teams)):
            raise _contradiction(event)
        clicks = [RankClick(it) if isinstance(it, int) else it for it in event.clicks]
        try:
            return _code(known, event, self._credited(event, clicks))
        except IndexError:
            raise _contradiction(event) from None

    def _pair(self, event: Duels | Impression, known: Mapping[str, Any]) -> int:
        self._check_known(event, known)
        if isinstance(event, Impression):
            self._check_ranks(teams=event.teams, docs=event.docs, chances=event.chances)
        code = _special(event, known)
        if isinstance(event, Duels):
            self._check_duels(event.wins_a + event.wins_b + event.ties)
        return code

    def _check_ranks(self, **lists: Sequence[Any] | None) -> None:
        for field, entries in lists.items():
            if entries is not None and len(entries) > self._max_ranks:
                raise Rejected(
                    "invalid_record",
                    f"{field} has {len(entries)} entries; limits.max_ranks allows "
                    f"{self._max_ranks}.",
                )

    def _check_duels(self, duels: int) -> None:
        if duels > self._max_duels:
            raise Rejected(
                "invalid_record",
                f"wins_a, wins_b and ties add up to {duels} duels; limits.max_duels_per_record "
                f"allows {self._max_duels}.",
            )

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


def _special(event: InputEvent, _known: Mapping[str, Any]) -> int:
    if problem := contradiction(event):
        raise Rejected("invalid_record", problem)
    return SPECIAL


def _contradiction(event: InputEvent) -> Rejected:
    return Rejected("invalid_record", contradiction(event) or "the record contradicts itself.")


def _duels_by_code(n_arms: int) -> tuple[Integers, Integers, Floats]:
    """First arm, second arm and outcome of every code, to look many up at once."""
    pairs, outcomes = np.divmod(np.arange(n_arms * n_arms * OUTCOMES), OUTCOMES)
    first, second = np.divmod(pairs, n_arms)
    return first, second, np.array(FIRST_WINS)[outcomes]
