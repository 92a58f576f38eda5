"""The stop rule: exploration ends once the confidence in the champion is high enough."""

from __future__ import annotations

from typing import Any, Final

from streamduel.config.experiment import StopSettings
from streamduel.policies import Policy
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.evidence import nats, sure_at

_CHECK_AGAIN: Final = 100
"""After n duels, the next check follows n/100 duels later: the evidence is valid at any time, so
exploration ends at most a hundredth later than with a check after every duel."""


class StopRule:
    """Ends exploration when the champion is the winner with the configured confidence.

    The confidence holds at all times together, so it may be checked any number of times.

    Args:
        settings: the confidence, None to explore without end, and the minimum number of duels.
        check_at: the number of duels at which the next check is due; None for a new experiment.
    """

    __slots__ = ("_check_at", "_settings")

    def __init__(self, settings: StopSettings, check_at: int | None = None) -> None:
        self._settings = settings
        self._check_at = settings.min_duels if check_at is None else check_at

    def is_reached(self, policy: Policy) -> bool:
        """Whether the confidence is high enough; checked only if there are enough new duels."""
        confidence = self._settings.confidence
        if confidence is None or policy.duels < self._check_at:
            return False
        self._check_at = policy.duels + 1 + policy.duels // _CHECK_AGAIN
        enough = nats(confidence, policy.n_arms, policy.seeks)
        return sure_at(policy.wins, policy.champion(), policy.seeks) >= enough

    def until_check(self, policy: Policy) -> int:
        """Duels until the next check."""
        unlimited = self._settings.confidence is None
        return MAX_DUELS if unlimited else self._check_at - policy.duels

    def state(self) -> dict[str, Any]:
        """Arguments that restore the rule."""
        return {"check_at": self._check_at}
