"""From an event to a small integer: a duel's code, so that a thousand are learned at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from streamduel.experiment_settings import ExperimentSettings
from streamduel.interleaving.credit import CREDITS
from streamduel.preference.counts import Floats, Integers
from streamduel.records import (
    MAX_COUNT,
    Control,
    Duel,
    Duels,
    InputEvent,
    Interleaving,
    Rejected,
)
from streamduel.stream.roster import Roster

NO_DUEL: Final = -1
"""The code of a record that is accepted and is no duel: a tie under `ties: drop`."""
BULK: Final = -2
"""The code of a record that stands for many duels."""
CONTROL: Final = -3
"""The code of a record that changes the experiment."""
MAX_CODES: Final = 4096
"""Codes of `duel` records that are looked up at once: all of them for up to 36 arms."""
OUTCOMES: Final = 3
FIRST_WINS: Final = (0.0, 1.0, 0.5)
"""What an outcome means for the first arm: b wins, a wins, a tie."""
_B_WINS, _A_WINS, _TIE = 0, 1, 2


class Coder:
    """Turns events into codes: (first arm · K + second arm) · 3 + outcome, or a negative one.

    What a `duel` says follows from a, b and winner: `codes[a][b][winner]` remembers it.

    Args:
        settings: of the experiment.
        roster: its arms; after any change of it, call `renumber`.

    Attributes:
        codes: of `duel` records seen before; always the same object.
    """

    __slots__ = ("_credit", "_noted", "_roster", "_winners", "by_code", "codes")

    def __init__(self, settings: ExperimentSettings, roster: Roster) -> None:
        self._roster = roster
        self._credit = CREDITS[settings.credit.name]
        tie = _TIE if settings.ties == "half" else NO_DUEL
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
        if isinstance(event, Control):
            return _control_code(event)
        for arm in (event.a, event.b):
            if arm not in known:
                raise self._roster.stranger(arm)
        alike = event.a == event.b
        if isinstance(event, Duel):
            outcome = _TIE if alike else self._winners.get(event.winner)  # type: ignore[arg-type]
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
        else:
            outcome = self._credited(event)
        if outcome < 0:
            return NO_DUEL
        first, second = known[event.a], known[event.b]
        if first is None or second is None:
            return NO_DUEL  # checked in hindsight, where arms have no index
        return int((first * len(known) + second) * OUTCOMES + outcome)

    def _credited(self, event: Interleaving) -> int:
        ranks = [click if isinstance(click, int) else click.rank for click in event.clicks]
        try:
            first_wins = self._credit(event.teams, ranks)
        except IndexError:
            length = len(event.teams)
            outside = next(rank for rank in ranks if rank >= length)
            raise Rejected(
                "invalid_record",
                f"clicks has rank {outside}, outside the list: 'teams' has {length} ranks, from 0.",
            ) from None
        return self._winners["tie" if first_wins == 0.5 else "a" if first_wins else "b"]


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
