"""What takes arithmetic to tell of an experiment: its figures, and where dear ones are kept."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Final, NamedTuple

from streamduel.preference.regret import KINDS

CHEAP_ARMS: Final = 100
"""Up to so many arms an assessment takes at most some milliseconds, and may be made while somebody
waits for it. With 500 it takes two seconds, and no probe of the process's health would wait."""


class Assessment(NamedTuple):
    """What an experiment's duels and impressions say.

    All of it is as of the same moment; of many arms regret and whether there may be a winner are
    older than the rest, which costs little.

    Attributes:
        regret: estimated, by kind.
        regret_bound: at most, by kind.
        guardrail_regret: what guardrails have cost of it, by kind; None without guardrails.
        confidence: that the champion is the winner the policy looks for, at least.
        condorcet_winner_possible: whether some arm may still beat all others; NaN while unknown.
        team_mismatch: how sure it is that services do not treat the sides alike.
    """

    regret: Mapping[str, float]
    regret_bound: Mapping[str, float]
    guardrail_regret: Mapping[str, float] | None
    confidence: float
    condorcet_winner_possible: float
    team_mismatch: float

    @classmethod
    def unknown(cls, *, guarded: bool) -> Assessment:
        """Of an experiment of which nothing is worked out yet: NaN for all.

        Args:
            guarded: whether it has guardrails.
        """
        regret = dict.fromkeys(KINDS, nan)
        return cls(regret, regret, regret if guarded else None, nan, nan, nan)


class WorkedOut:
    """The newest assessment of each champion that an experiment of many arms has had.

    All views of the experiment share it while they have the same shape. It is written by the thread
    that works assessments out, and read by all others: one step each.
    """

    __slots__ = ("_by_champion",)

    def __init__(self) -> None:
        self._by_champion: dict[int, Assessment] = {}

    def keep(self, champion: int, assessment: Assessment) -> None:
        """Have it at hand."""
        self._by_champion[champion] = assessment

    def of(self, champion: int) -> Assessment | None:
        """The newest; None while there is none."""
        return self._by_champion.get(champion)
