"""Crediting with streamduel's own credit functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.config.experiment import ExperimentSettings
from streamduel.interleaving.credit import Click, Credit, Shown

A_WINS: Final = 0
B_WINS: Final = 1
TIE: Final = 2
NO_DUEL: Final = 3


class Crediting:
    """Credits the impressions of all experiments.

    Args:
        experiments: their settings by name.

    >>> crediting = Crediting({"search": ExperimentSettings(arms=["bm25", "ltr"])})
    >>> crediting.outcome("search", "ab", None, [Click(1)]) == B_WINS
    True
    """

    def __init__(self, experiments: Mapping[str, ExperimentSettings]) -> None:
        self._experiments = experiments
        self._credits: dict[str, Credit] = {}

    def outcome(
        self,
        experiment: str,
        teams: str,
        chances: Sequence[float | None] | None,
        clicks: Sequence[Click],
    ) -> int:
        """Who wins an impression.

        Args:
            experiment: its name.
            teams: for each rank `a`, `b` or `-`.
            chances: for each rank, the probability that the document came from side a, if logged.
            clicks: in order of their arrival, each on a rank of the list.
        """
        settings = self._experiments.get(experiment)
        if settings is None:  # it was removed while the impression waited for its clicks
            return NO_DUEL
        if not clicks and settings.no_click == "drop":
            return NO_DUEL
        if experiment not in self._credits:
            self._credits[experiment] = settings.credit.create()
        shown = Shown([None if team == "-" else team for team in teams], chances)
        won = self._credits[experiment](shown, clicks)
        return TIE if won == 0.5 else A_WINS if won else B_WINS
