"""When an experiment will be sure, as it is shown."""

from __future__ import annotations

from math import nan
from typing import Final, Literal, NamedTuple, TypeAlias

WhyNot: TypeAlias = Literal[
    "computing",
    "few_duels",
    "finished",
    "frozen",
    "many_arms",
    "no_end",
    "no_traffic",
    "no_winner",
    "paused",
    "policy",
]

WHY_NOT: Final[dict[WhyNot, str]] = {
    "computing": "The forecast is being computed.",
    "few_duels": "There are too few duels for a forecast.",
    "finished": "Exploration has ended.",
    "frozen": "A pair is frozen, so the policy compares no others.",
    "many_arms": "There are too many rankers for a forecast.",
    "no_end": "No end is in sight: in most simulations the champion is still not sure after "
    "many times the present duels.",
    "no_traffic": "There is no traffic to estimate a time from.",
    "no_winner": "There is no forecast, because no ranker beats all others.",
    "paused": "The experiment is paused.",
    "policy": "The policy cannot be simulated.",
}
"""Why there is no forecast, for people."""


class Outlook(NamedTuple):
    """When an experiment will be sure, in seconds from now, at today's traffic.

    Attributes:
        median: in half of the simulations; 0 if it is sure, NaN without a forecast.
        low: in one of ten.
        high: in nine of ten; NaN if that is after the horizon.
        why_not: why there is no forecast; None if there is one.
    """

    median: float
    low: float = nan
    high: float = nan
    why_not: WhyNot | None = None

    @classmethod
    def unknown(cls, why_not: WhyNot) -> Outlook:
        """An outlook without a forecast."""
        return cls(nan, why_not=why_not)


SURE: Final = Outlook(0.0, 0.0, 0.0)
"""The experiment is sure already."""
