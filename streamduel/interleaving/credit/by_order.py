"""Credit by which click came first, or last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamduel.interleaving.credit.shown import ClickLike, ShownLike


def first_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side whose document was clicked first wins.

    For lists that one click ends, or nearly so: what follows is then an afterthought, and people
    who try one document after the other have no more votes than others. It favours what looks good
    over what is good.

    What came first is told by `ts` where each click has one, else by the order in which the clicks
    are given; so it is where two have the same `ts`. Clicks on a rank of no team are passed over,
    and more clicks on a rank change nothing. A tie: no side has a click.

    Args:
        shown: the list.
        clicks: on it, in the order in which they came.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

    >>> from streamduel.interleaving.credit import Click, Shown, on_ranks
    >>> first_click(Shown(["a", "b", "b"]), on_ranks([0, 1, 2]))
    1.0
    >>> first_click(Shown(["a", "b", "b"]), [Click(0, ts=8_000), Click(1, ts=5_000)])
    0.0

    Source: after Yue, Gao, Chapelle, Zhang and Joachims, "Learning More Powerful Test Statistics
    for Click-Based Retrieval Evaluation", SIGIR 2010, for whom clicks of different kinds are worth
    different amounts.
    """
    return _first(_teams(shown, _ordered(clicks)))


def last_click(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side whose document was clicked last wins.

    For searches that end when something good has been found: the last click is then the one that
    satisfied. It knows nothing of those who gave up.

    What came last is told by `ts` where each click has one, else by the order in which the clicks
    are given; so it is where two have the same `ts`. Clicks on a rank of no team are passed over,
    and more clicks on a rank change nothing. A tie: no side has a click.

    Args:
        shown: the list.
        clicks: on it, in the order in which they came.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

    >>> from streamduel.interleaving.credit import Click, Shown, on_ranks
    >>> last_click(Shown(["a", "b", "b"]), on_ranks([1, 2, 0]))
    1.0
    >>> last_click(Shown(["a", "b", "b"]), [Click(0, ts=8_000), Click(1, ts=5_000)])
    1.0

    Source: after Yue et al., SIGIR 2010; see `first_click`.
    """
    return _first(reversed(_teams(shown, _ordered(clicks))))


def _ordered(clicks: Sequence[ClickLike]) -> Sequence[ClickLike]:
    """By time, where that is known of all; those of the same time stay in their order."""
    timed = [(click.ts, place) for place, click in enumerate(clicks) if click.ts is not None]
    if len(timed) < len(clicks):
        return clicks
    return [clicks[place] for _, place in sorted(timed)]


def _teams(shown: ShownLike, clicks: Sequence[ClickLike]) -> list[str | None]:
    """Of all of them, so that no rank lies outside the list unnoticed."""
    return [shown.teams[click.rank] for click in clicks]


def _first(teams: Iterable[str | None]) -> float:
    for team in teams:
        if team is not None:
            return 1.0 if team == "a" else 0.0
    return 0.5
