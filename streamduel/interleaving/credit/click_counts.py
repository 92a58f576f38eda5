"""Credit by the number of clicks of each side."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.interleaving.base import at_rank
from streamduel.interleaving.credit.base import ClickLike, ShownLike, credit_function, winner


@credit_function(summary="more clicks", source="Radlinski, Kurup and Joachims, CIKM 2008")
def click_count(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side with more clicks on its documents wins.

    The credit function of team-draft interleaving, and the one to begin with: it needs only the
    clicks. Each click of any action counts, also a second one on the same rank; a click on a rank
    of no team counts for neither side. A tie: equally many clicks for both sides, or none.

    Args:
        shown: the list.
        clicks: its clicks, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank is outside the list.

    >>> from streamduel.interleaving.credit import Shown, on_ranks
    >>> click_count(Shown(["a", "b", "b", None]), on_ranks([0, 2, 1]))
    0.0
    >>> click_count(Shown(["a", "b"]), [])
    0.5

    Source: Radlinski, Kurup and Joachims, "How Does Clickthrough Data Reflect Retrieval Quality?",
    CIKM 2008, section 3.2.
    """
    teams = shown.teams
    lead = 0
    for click in clicks:
        rank = click.rank
        team = teams[rank] if rank >= 0 else at_rank(teams, rank)  # faster: called for every click
        if team == "a":
            lead += 1
        elif team == "b":
            lead -= 1
    return 1.0 if lead > 0 else 0.0 if lead else 0.5  # not `winner`: called for every impression


@credit_function(
    summary="a click, where the other side has none",
    source="after Radlinski, Kurup and Joachims, CIKM 2008",
)
def any_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side that has a click wins, if the other side has none.

    For users who click on everything once they have begun, or on the same document repeatedly: the
    number of their clicks is not informative. It makes more ties than `click_count` and never
    contradicts it. Several clicks on a rank count as one. A tie: both sides have a click, or
    neither has.

    Args:
        shown: the list.
        clicks: its clicks, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank is outside the list.

    >>> from streamduel.interleaving.credit import Shown, on_ranks
    >>> any_click(Shown(["a", "b", "b"]), on_ranks([2, 2]))
    0.0
    >>> any_click(Shown(["a", "b", "b"]), on_ranks([0, 1, 2]))
    0.5

    Source: `click_count` of the impressions with clicks for one side alone; after Radlinski, Kurup
    and Joachims, CIKM 2008.
    """
    teams = {at_rank(shown.teams, click.rank) for click in clicks}
    return winner(("a" in teams) - ("b" in teams))
