"""Credit by the order of the clicks: the first or the last one decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamduel.interleaving.base import at_rank
from streamduel.interleaving.credit.base import ClickLike, ShownLike, credit_function


@credit_function(summary="the first click", source="after Yue et al., SIGIR 2010", needs=["order"])
def first_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side whose document was clicked first wins.

    For lists where one click usually ends the search: later clicks are exploration, and users who
    try one document after the other get one vote like everyone else. It favours what looks good
    over what is good.

    The order is that of `ts` if each click has one, else that of `clicks`, which also breaks ties
    of `ts`. Clicks on a rank of no team are skipped, and repeated clicks on a rank change nothing.
    A tie: no side has a click.

    Args:
        shown: the list.
        clicks: its clicks, in the order of their arrival.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank is outside the list.

    >>> from streamduel.interleaving.credit import Click, Shown, on_ranks
    >>> first_click(Shown(["a", "b", "b"]), on_ranks([0, 1, 2]))
    1.0
    >>> first_click(Shown(["a", "b", "b"]), [Click(0, ts=8_000), Click(1, ts=5_000)])
    0.0

    Source: after Yue, Gao, Chapelle, Zhang and Joachims, "Learning More Powerful Test Statistics
    for Click-Based Retrieval Evaluation", SIGIR 2010, who weight kinds of clicks differently.
    """
    return _first(_teams(shown, clicks))


@credit_function(summary="the last click", source="after Yue et al., SIGIR 2010", needs=["order"])
def last_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side whose document was clicked last wins.

    For searches that end when the user has found something good: the last click is the one that
    satisfied. Users who gave up are counted, too.

    The order is that of `first_click`. A tie: no side has a click.

    Args:
        shown: the list.
        clicks: its clicks, in the order of their arrival.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank is outside the list.

    >>> from streamduel.interleaving.credit import Click, Shown, on_ranks
    >>> last_click(Shown(["a", "b", "b"]), on_ranks([1, 2, 0]))
    1.0
    >>> last_click(Shown(["a", "b", "b"]), [Click(0, ts=8_000), Click(1, ts=5_000)])
    1.0

    Source: after Yue et al., SIGIR 2010; see `first_click`.
    """
    return _first(reversed(_teams(shown, clicks)))


def _teams(shown: ShownLike, clicks: Sequence[ClickLike]) -> list[str | None]:
    """The teams of all clicks, by time if each has one; the sort is stable.

    A rank outside the list raises IndexError wherever it occurs.
    """
    timed = [(click.ts, place) for place, click in enumerate(clicks) if click.ts is not None]
    if len(timed) == len(clicks):
        clicks = [clicks[place] for _, place in sorted(timed)]
    return [at_rank(shown.teams, click.rank) for click in clicks]


def _first(teams: Iterable[str | None]) -> float:
    for team in teams:
        if team is not None:
            return 1.0 if team == "a" else 0.0
    return 0.5
