"""Crediting: which side of an interleaved impression its clicks speak for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

Credit = Callable[[Sequence[str | None], Sequence[int]], float]
"""From the team of each rank and the clicked ranks to 1 (side a wins), 0 (side b) or 0.5."""


def click_count(teams: Sequence[str | None], ranks: Sequence[int]) -> float:
    """The side with more clicks on its documents wins; equally many, or none, is a tie.

    The credit function of team-draft interleaving, and the one to begin with: it needs nothing
    but the clicks. Each click counts, also a second one on the same rank; a click on a rank of
    no team counts for nobody.

    Args:
        teams: per rank "a", "b" or None: whose document stood there.
        ranks: the clicked ranks, from 0.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

    Source: Radlinski, Kurup & Joachims, "How Does Clickthrough Data Reflect Retrieval
    Quality?", CIKM 2008, section 3.2.

    >>> click_count(["a", "b", "b", None], [0, 2, 1])
    0.0
    >>> click_count(["a", "b"], [])
    0.5
    """
    lead = 0
    for rank in ranks:
        team = teams[rank]
        if team == "a":
            lead += 1
        elif team == "b":
            lead -= 1
    return 0.5 if lead == 0 else float(lead > 0)


CREDITS: Final[Mapping[str, Credit]] = MappingProxyType({"click_count": click_count})
"""The credit functions by the name that a configuration gives them."""
