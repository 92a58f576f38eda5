"""From an event to a small integer: a duel's code, so that a thousand are learned at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from streamduel.config.experiment import ExperimentSettings
from streamduel.interleaving.credit import ClickLike, ShownLike
from streamduel.preference.arrays import Floats, Integers
from streamduel.records import (
    MAX_COUNT,
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
from streamduel.stream.attribution import Shown
from streamduel.stream.roster import Roster

NO_DUEL: Final = -1
"""The code of a record that is accepted and is no duel: a tie under `ties: drop`."""
BULK: Final = -2
"""The code of a record that stands for many duels."""
CONTROL: Final = -3
"""The code of a record that changes the experiment."""
PART: Final = -4
"""The code of an impression, or of a click that comes apart from it."""
MAX_CODES: Final = 4096
"""Codes of `duel` records that are looked up at once: all of them for up to 36 arms."""
OUTCOMES: Final = 3
FIRST_WINS: Final = (0.0, 1.0, 0.5)
"""What an outcome means for the first arm: b wins, a wins, a tie."""
_B_WINS, _A_WINS, TIE = 0, 1, 2


class Coder:
    """Turns events into codes: (first arm · K + second arm) · 3 + outcome, or a negative one.

    What a `duel` says follows from a, b and winner: `codes[a][b][winner]` remembers it.

    Args:
        settings: of the experiment.
        roster: its arms; after any change of it, call `renumber`.

    Attributes:
        codes: of `duel` records seen before; always the same object.
    """

    __slots__ = ("_credit", "_drops_unclicked", "_noted", "_roster", "_winners", "by_code", "codes")

    def __init__(self, settings: ExperimentSettings, roster: Roster) -> None:
        self._roster = roster
        self._credit = settings.credit.create()
        tie = TIE if settings.ties == "half" else NO_DUEL
        self._drops_unclicked = settings.no_click == "drop"
        self._winners = {"a": _A_WINS, "b": _B_WINS, "tie": tie}
        self.codes: dict[str, dict[str, dict[str | None, int]]] = {}
        self.renumber()

    def renumber(self) -> None:
        """Forget what was worked out for other arms."""
        self.codes.clear()
        self._noted = 0
        self.by_code = _duels_by_code(len(self._roster.arms))

    def code(self, event: InputEvent) -> int:
        """What an event says, as one integer.

        Raises:
            Rejected: it names an unknown arm, or contradicts itself.
        """
        code = self._work_out(event, self._roster.index)
        if type(event) is Duel and self._noted < MAX_CODES:
            self._noted += 1
            self.codes.setdefault(event.a, {}).setdefault(event.b, {})[event.winner] = code
        return code

    def check_at(self, event: InputEvent, offset: int) -> None:
        """Whether the event was no mistake at its offset, where perhaps other arms competed.

        Raises:
            Rejected: it was.
        """
        self._work_out(event, self._roster.known_at(offset))

    def _work_out(self, event: InputEvent, known: Mapping[str, Any]) -> int:
        if isinstance(event, Control | Click):
            return _control_code(event) if isinstance(event, Control) else _click_code(event)
        for arm in (event.a, event.b):
            if arm not in known:
                raise self._roster.stranger(arm)
        alike = event.a == event.b
        if isinstance(event, Duel):
            outcome = TIE if alike else self._winners.get(event.winner)  # type: ignore[arg-type]
            if outcome is None:
                raise Rejected(
                    "invalid_record",
                    "winner must be 'a', 'b' or 'tie' in a duel of two arms (found null).",
                )
        elif alike:
            raise Rejected(
                "invalid_record",
                f"a and b must be two arms (found '{event.a}' twice); only a 'duel' may have "
                f"one arm on both sides.",
            )
        elif isinstance(event, Duels):
            return _bulk_code(event)
        elif isinstance(event, Impression):
            return _impression_code(event)
        else:
            outcome = self._credited_whole(event)
        if outcome < 0:
            return NO_DUEL
        first, second = known[event.a], known[event.b]
        if first is None or second is None:
            return NO_DUEL  # checked in hindsight, where arms have no index
        return int((first * len(known) + second) * OUTCOMES + outcome)

    def outcome(self, shown: Shown) -> int:
        """The code of an impression to which no more clicks can come."""
        index = self._roster.index
        first, second = index.get(shown.a), index.get(shown.b)
        if first is None or second is None:
            return NO_DUEL  # an arm has been retired since
        outcome = self._credited(shown, shown.clicks)
        return NO_DUEL if outcome < 0 else (first * len(index) + second) * OUTCOMES + outcome

    def _credited(self, shown: ShownLike, clicks: Sequence[ClickLike]) -> int:
        if not clicks and self._drops_unclicked:
            return NO_DUEL
        first_wins = self._credit(shown, clicks)
        return self._winners["tie" if first_wins == 0.5 else "a" if first_wins else "b"]

    def _credited_whole(self, event: Interleaving) -> int:
        if event.chances is not None:
            _check_length("chances", event)
        clicks = [RankClick(it) if isinstance(it, int) else it for it in event.clicks]
        try:
            return self._credited(event, clicks)
        except IndexError:
            length = len(event.teams)
            outside = next(click.rank for click in clicks if click.rank >= length)
            raise Rejected(
                "invalid_record",
                f"clicks has rank {outside}, outside the list: 'teams' has {length} ranks, from 0.",
            ) from None


def _click_code(event: Click) -> int:
    if event.rank is None and event.doc is None:
        raise Rejected("invalid_record", "a click must name a 'rank' or a 'doc' (found neither).")
    return PART


def _impression_code(event: Impression) -> int:
    for name in ("docs", "chances"):
        if getattr(event, name) is not None:
            _check_length(name, event)
    return PART


def _check_length(name: str, event: Impression | Interleaving) -> None:
    ranks, found = len(event.teams), len(getattr(event, name))
    if found != ranks:
        raise Rejected(
            "invalid_record",
            f"{name} must have an entry for each rank, {ranks} as 'teams' has (found {found}).",
        )


def _control_code(event: Control) -> int:
    if event.action in {"add_arm", "retire_arm"} and event.arm is None:
        raise Rejected("invalid_record", f"'{event.action}' must name an 'arm' (found none).")
    if event.action == "freeze_pair" and (None in {event.a, event.b} or event.a == event.b):
        raise Rejected("invalid_record", "'freeze_pair' must name two arms, 'a' and 'b'.")
    return CONTROL


def _bulk_code(event: Duels) -> int:
    total = event.wins_a + event.wins_b + event.ties
    if not 1 <= total <= MAX_COUNT:
        raise Rejected(
            "invalid_record",
            f"wins_a, wins_b and ties must add up to between 1 and 2^40 (found {total}).",
        )
    return BULK


def _duels_by_code(n_arms: int) -> tuple[Integers, Integers, Floats]:
    """First arm, second arm and outcome of every code, to look many up at once."""
    pairs, outcomes = np.divmod(np.arange(n_arms * n_arms * OUTCOMES), OUTCOMES)
    first, second = np.divmod(pairs, n_arms)
    return first, second, np.array(FIRST_WINS)[outcomes]
