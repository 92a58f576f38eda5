"""Crediting with streamduel's own credit functions, each pattern of clicks once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.config.experiment import ExperimentSettings
from streamduel.interleaving.credit import Click, Credit
from streamduel.interleaving.credit import Shown as ShownList

A_WINS: Final = 0
B_WINS: Final = 1
TIE: Final = 2
NO_DUEL: Final = 3

MAX_PATTERNS: Final = 2**16
"""Patterns whose outcome is remembered; ten ranks and one or two clicks have some hundred."""

MAX_REMEMBERED: Final = 10
"""Clicks of a remembered pattern: people make a handful, and a writer of the topic could otherwise
fill the memory with patterns of a thousand clicks, none of which comes twice."""

Pattern = tuple[tuple[int, str, str, float | None], ...]
"""Rank, action, team and chance of each click, in order: all that the credit depends on."""


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
        self._known: dict[tuple[str, bool, Pattern], int] = {}

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
        timed = [click.ts for click in clicks if click.ts is not None]
        if len(timed) == len(clicks) > 1:
            clicks = sorted(clicks, key=lambda click: click.ts or 0)
        pattern = tuple(
            (rank, action, teams[rank], None if chances is None else chances[rank])
            for rank, action, _ in clicks
        )
        whole = experiment, chances is not None, pattern
        if len(pattern) > MAX_REMEMBERED:
            return self._credit(*whole)
        known = self._known.get(whole)
        if known is None:
            if len(self._known) >= MAX_PATTERNS:
                self._known.clear()
            known = self._known[whole] = self._credit(*whole)
        return known

    def _credit(self, experiment: str, logged: bool, pattern: Pattern) -> int:
        settings = self._experiments.get(experiment)
        if settings is None:  # it was removed while the impression waited for its clicks
            return NO_DUEL
        if not pattern and settings.no_click == "drop":
            return NO_DUEL
        if experiment not in self._credits:
            self._credits[experiment] = settings.credit.create()
        ranks = max((click[0] for click in pattern), default=-1) + 1
        teams: list[str | None] = [None] * ranks
        chances: list[float | None] = [None] * ranks
        for rank, _, team, chance in pattern:
            teams[rank], chances[rank] = None if team == "-" else team, chance
        shown = ShownList(teams, chances if logged else None)
        won = self._credits[experiment](
            shown, [Click(rank, action) for rank, action, *_ in pattern]
        )
        return TIE if won == 0.5 else A_WINS if won else B_WINS
