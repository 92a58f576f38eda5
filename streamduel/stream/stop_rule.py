"""When enough is known: exploration ends once the champion is sure."""

from __future__ import annotations

from typing import Any, Final

from streamduel.config.experiment import StopSettings
from streamduel.policies import Policy
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.evidence import nats, sure_at

_LOOK_AGAIN: Final = 100
"""After so many duels, one more is looked at: evidence holds at any time, so to look after one duel
in a hundred is as right as after each, and ends at most a hundredth later."""


class StopRule:
    """Ends exploration when the champion is the winner with the confidence asked for.

    The confidence holds at all times together: it may be looked at as often as one likes.

    Args:
        settings: the confidence, if exploration is to end at all, and how many duels there must be
            at least.

    Attributes:
        look_at: the number of duels at which it looks again.
    """

    __slots__ = ("_settings", "look_at")

    def __init__(self, settings: StopSettings) -> None:
        self._settings = settings
        self.look_at = settings.min_duels

    def is_reached(self, policy: Policy) -> bool:
        """Whether the champion is sure; looks only if there are enough new duels."""
        confidence = self._settings.confidence
        if confidence is None or policy.duels < self.look_at:
            return False
        self.look_at = policy.duels + 1 + policy.duels // _LOOK_AGAIN
        enough = nats(confidence, policy.n_arms, policy.seeks)
        return sure_at(policy.wins, policy.champion(), policy.seeks) >= enough

    def until_look(self, policy: Policy) -> int:
        """How many duels more until it looks again."""
        sure_of_nothing = self._settings.confidence is None
        return MAX_DUELS if sure_of_nothing else self.look_at - policy.duels

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"look_at": self.look_at}
