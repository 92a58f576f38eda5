"""Credit by the probability that each clicked document came from either side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import fsum
from typing import Final

from streamduel.interleaving.base import at_rank
from streamduel.interleaving.credit.base import ClickLike, ShownLike, credit_function, winner
from streamduel.interleaving.credit.click_counts import click_count

MAX_CLICKS: Final = 100
"""Clicks per impression: users make a few, and the work grows with their square."""

MARGIN: Final = 1e-12
"""Smaller differences of probabilities are ties; rounding errors are far smaller."""


@credit_function(
    summary="more clicks in more of the likely assignments",
    source="Hofmann, Whiteson and de Rijke, CIKM 2011",
    needs=["ranks"],
)
def probabilistic(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
    """The side that more probably has more clicks wins, over all teams the list may have come from.

    For probabilistic interleaving, where either side could have drawn most documents: a service
    logs the result of `chances` of `streamduel.interleaving.probabilistic`.

    Each document came from side a with its chance, independently of the others. P(a has more
    clicks) is compared with P(b has more). Each click counts, also a second one on the same rank,
    which has the same team as the first; ranks without a chance count for neither side. A tie: the
    probabilities differ by at most 1e-12.

    Without `chances`, and with more than 100 clicks, the result is that of `click_count`.

    **It is biased**, as a duel has a winner and no share of a win: docs/interleaving.md has an
    example. `expected_credit` keeps the share and is unbiased; so is `click_count`.

    Args:
        shown: the list.
        clicks: its clicks, in any order.

    Returns:
        1.0 when side a wins, 0.0 when side b does, 0.5 for a tie.

    Raises:
        IndexError: a rank is outside the list.

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
    if chances is None or len(clicks) > MAX_CLICKS:
        return click_count(shown, clicks)
    distribution = leads(chances, [click.rank for click in clicks])
    lead = fsum(chance if lead > 0 else -chance for lead, chance in distribution.items() if lead)
    return 0.5 if abs(lead) <= MARGIN else winner(lead)


def leads(chances: Sequence[float | None], ranks: Sequence[int]) -> dict[int, float]:
    """The distribution of side a's lead in clicks, by the chance of side a at each rank.

    Repeated ranks count repeatedly; ranks without a chance count for neither side.

    >>> leads([0.5, 0.75], [0, 1])
    {2: 0.375, 0: 0.5, -2: 0.125}
    """
    found = [1.0]  # by the number of clicks that side a has
    for rank, clicks in sorted(Counter(ranks).items()):
        chance = at_rank(chances, rank)
        if chance is None:
            continue
        none = [0.0] * clicks
        found = [
            won * chance + lost * (1 - chance)
            for won, lost in zip(none + found, found + none, strict=True)
        ]
    total = len(found) - 1
    return {2 * own - total: found[own] for own in range(total, -1, -1)}
