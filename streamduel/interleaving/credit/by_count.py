"""Credit by how many clicks a side has."""

from __future__ import annotations

from collections.abc import Sequence

from streamduel.interleaving.credit.shown import ClickLike, ShownLike


def click_count(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side with more clicks on its documents wins.

    The credit function of team-draft interleaving, and the one to begin with: it needs nothing
    but the clicks. Each click counts, of whatever action, also a second one on the same rank; a
    click on a rank of no team counts for nobody. A tie: as many clicks for either side, or none.

    Args:
        shown: the list.
        clicks: on it, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

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
        team = teams[click.rank]
        if team == "a":
            lead += 1
        elif team == "b":
            lead -= 1
    return 1.0 if lead > 0 else 0.0 if lead else 0.5  # not `winner`: every impression passes here


def any_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side that has a click wins, if the other has none.

    For users who click on all they see once they have begun, or on the same thing again and again:
    how often they do so says nothing. It makes more ties than `click_count` and never contradicts
    it. Several clicks on a rank are as good as one. A tie: both sides have a click, or neither.

    Args:
        shown: the list.
        clicks: on it, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

    >>> from streamduel.interleaving.credit import Shown, on_ranks
    >>> any_click(Shown(["a", "b", "b"]), on_ranks([2, 2]))
    0.0
    >>> any_click(Shown(["a", "b", "b"]), on_ranks([0, 1, 2]))
    0.5

    Source: `click_count` of the impressions that speak for one side alone; after Radlinski, Kurup
    and Joachims, CIKM 2008.
    """
    teams = {shown.teams[click.rank] for click in clicks}
    if ("a" in teams) == ("b" in teams):
        return 0.5
    return 1.0 if "a" in teams else 0.0
