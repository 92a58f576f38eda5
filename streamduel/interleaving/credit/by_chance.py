"""Credit by how likely each clicked document was to come from either side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum
from typing import Final

from streamduel.interleaving.credit.by_count import click_count
from streamduel.interleaving.credit.shown import ClickLike, ShownLike, winner

MOST_CLICKS: Final = 100
"""On one impression: people make a handful, and the work grows with the square of the clicks."""

MARGIN: Final = 1e-12
"""Rounding errors of the probabilities are far smaller, and smaller differences say nothing."""


def probabilistic(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side wins that more likely has more clicks, over all teams the list may have come from.

    For probabilistic interleaving, whose documents could often have come from the other side, too:
    which side drew them was chance, and `chances` says how likely each side was to. A service logs
    what `chances` of `streamduel.interleaving.probabilistic` says.

    Each document has come from side a with its chance, independently of the others. So P(a has more
    clicks) is compared with P(b has more). Each click counts, also a second one on the same rank,
    which has the same team as the first; ranks without a chance count for nobody. A tie: neither
    probability is larger, by 1e-12.

    Without `chances` it goes by the teams, as if each chance were 1 or 0: that is `click_count`. So
    it does with more than 100 clicks.

    **It is biased**, as a duel has a winner and no share of a win. Of the rankings (1, 2, 3, 4, 5)
    and (2, 3, 4, 5, 1), the first has only one document higher. Users who click anywhere prefer the
    second in 50 of 100 impressions and the first in 30. `expected_credit` keeps the share and is
    fair; so is `click_count`, which goes by who really drew the document.

    Args:
        shown: the list.
        clicks: on it, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank lies outside the list.

    >>> from streamduel.interleaving.credit import Shown, on_ranks
    >>> shown = Shown(["b", "b", "b"], chances=[0.9, 0.4, 0.4])
    >>> probabilistic(shown, on_ranks([0]))
    1.0
    >>> probabilistic(shown, on_ranks([0, 1, 2]))  # 0.9 · (1 - 0.6²) + 0.1 · 0.4² = 0.592
    1.0

    Source: Hofmann, Whiteson and de Rijke, "A Probabilistic Method for Inferring Preferences from
    Clicks", CIKM 2011, the comparison that marginalises over assignments; here its sign.
    """
    chances = shown.chances
    if chances is None or len(clicks) > MOST_CLICKS:
        return click_count(shown, clicks)
    likely = leads(chances, [click.rank for click in clicks])
    lead = fsum(chance if lead > 0 else -chance for lead, chance in likely.items() if lead)
    return 0.5 if abs(lead) <= MARGIN else winner(lead)


def leads(chances: Sequence[float | None], ranks: Sequence[int]) -> dict[int, float]:
    """By how many clicks side a may be ahead, each with its probability.

    Args:
        chances: per rank, how likely its document came from side a; None where it is nobody's.
        ranks: the clicked ranks; a rank that is there twice counts twice.

    Raises:
        IndexError: a rank lies outside the list.

    >>> leads([0.5, 0.75], [0, 1])
    {2: 0.375, 0: 0.5, -2: 0.125}
    """
    found = {0: 1.0}
    for rank, clicks in sorted(Counter(ranks).items()):
        chance = chances[rank]
        if chance is None:
            continue
        spread: dict[int, float] = {}
        for lead, probability in found.items():
            for step, part in ((clicks, chance), (-clicks, 1 - chance)):
                spread[lead + step] = spread.get(lead + step, 0.0) + probability * part
        found = spread
    return found
