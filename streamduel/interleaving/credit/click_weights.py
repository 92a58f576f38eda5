"""Credit by the weight of clicks: by their action, or by their rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, Final

from streamduel.errors import InterleavingError
from streamduel.interleaving.base import at_rank
from streamduel.interleaving.credit.base import (
    ClickLike,
    Credit,
    ShownLike,
    credit_function,
    winner,
)
from streamduel.preference.power import power

MAX_WEIGHT: Final = 1000
"""Only the ratio of weights matters; a larger one leaves no influence to the other actions."""

MAX_ETA: Final = 10
"""Far above any measured value: from 3 on, the tenth rank outweighs a thousand clicks above it."""

POWER_LAW_RANKS: Final = 100
"""Ranks that the power law distinguishes; users rarely read further."""


@credit_function(
    summary="more weight of clicks, by their action",
    source="Schuth, Hofmann and Radlinski, SIGIR 2015; Yue et al., SIGIR 2010",
    has_parameters=True,
)
def weighted(weights: Mapping[str, float]) -> Credit:
    """The side whose clicks weigh more wins, each click by its action.

    For shops and similar services, which log actions that say more than a click. A negative
    weight counts against a document, for actions such as `hide`; actions without a weight count for
    neither side. Several clicks on a rank count each. A tie: equal sums. Sums are exact: 0.1 and
    0.2 weigh as much as 0.3, and the order of the clicks does not matter.

    Args:
        weights: the weight of each action, at least one, each from -1000 to 1000.

    Returns:
        The credit function. It raises IndexError if a rank is outside the list.

    Raises:
        InterleavingError: there is no weight, or one is out of range.

    >>> from streamduel.interleaving.credit import Click, Shown
    >>> credit = weighted({"cart": 3, "click": 1})
    >>> credit(Shown(["a", "b", "b"]), [Click(1), Click(2), Click(0, "cart")])
    1.0

    Source: Schuth, Hofmann and Radlinski, "Predicting Search Satisfaction Metrics with Interleaved
    Comparisons", SIGIR 2015; Yue et al., SIGIR 2010, who learn the weights.
    """
    if not isinstance(weights, Mapping):
        raise InterleavingError(
            f"weights must be by action, as {{'click': 1}} (found {weights!r})."
        )
    if not weights:
        raise InterleavingError("weights must have one action at least (found none).")
    for action, weight in weights.items():
        if not _is_within(weight, -MAX_WEIGHT, MAX_WEIGHT):
            raise InterleavingError(
                f"weights must be from -{MAX_WEIGHT} to {MAX_WEIGHT} (found {weight!r} for "
                f"'{action}')."
            )
    exact = _integers([_as_written(weight) for weight in weights.values()])
    by_action = dict(zip(weights, exact, strict=True))
    return _by_weight(lambda click: by_action.get(click.action, 0))


@credit_function(
    summary="more clicks, each by the inverse propensity of its rank",
    source="Joachims, Swaminathan and Schnabel, WSDM 2017",
    has_parameters=True,
    needs=["ranks"],
)
def position_debiased(
    propensities: Sequence[float] | None = None, eta: float | None = None
) -> Credit:
    """The side whose clicks weigh more wins; clicks at ranks that few users see weigh more.

    A click weighs one divided by its rank's propensity, the probability that a user looks that far
    down. For lists in which one side tends to be higher, unlike those of team draft, and for users
    who click several documents: a single click wins at any rank. Clicks far down are rare and may
    be accidents; here they decide.

    Each click of any action counts, also a second one on the same rank; a click on a rank of no
    team counts for neither side. A tie: equal sums. Sums are exact for the decimal numbers given,
    so that the order of the clicks does not matter.

    Args:
        propensities: for each rank, from the first, above 0 and at most 1; ranks beyond have the
            last one's. Only their ratios matter. `estimate_propensities` measures them.
        eta: instead, a power law: the propensity of rank r, from 0, is 1 / (r + 1) ** eta. From 0,
            which is `click_count`, to 10; 1 is usual. Ranks from 100 on have that of rank 99.

    Returns:
        The credit function. It raises IndexError if a rank is outside the list.

    Raises:
        InterleavingError: neither is given or both are, or a number is out of range.

    >>> from streamduel.interleaving.credit import Shown, on_ranks
    >>> shown = Shown(["a", "b", "a", "b"])
    >>> position_debiased(propensities=[1.0, 0.6, 0.4, 0.3])(shown, on_ranks([0, 2, 3]))
    1.0
    >>> position_debiased(eta=1)(shown, on_ranks([0, 2, 3]))
    0.5

    Source: Joachims, Swaminathan and Schnabel, "Unbiased Learning-to-Rank with Biased Feedback",
    WSDM 2017: clicks by inverse propensity, and the power law in its experiments.
    """
    if (propensities is None) == (eta is None):
        raise InterleavingError(
            "'position_debiased' needs either 'propensities' or 'eta' "
            f"(found {'neither' if eta is None else 'both'})."
        )
    if eta is not None and not _is_within(eta, 0, MAX_ETA):
        raise InterleavingError(f"eta must be from 0 to {MAX_ETA} (found {eta!r}).")
    weights = _power_law(eta) if eta is not None else _inverse(propensities or ())
    last = len(weights) - 1
    return _by_weight(lambda click: weights[min(click.rank, last)])


def _inverse(propensities: Sequence[float]) -> Sequence[int]:
    if not propensities:
        raise InterleavingError("propensities must have one rank at least (found none).")
    for rank, propensity in enumerate(propensities):
        if not _is_within(propensity, 0, 1) or propensity == 0:
            raise InterleavingError(
                f"propensities must be above 0 and at most 1 (found {propensity!r} at rank {rank})."
            )
    return _integers([1 / _as_written(propensity) for propensity in propensities])


@cache  # thousands of experiments may share a few values
def _power_law(eta: float) -> Sequence[int]:
    exponent = _as_written(eta)
    return _integers(
        [Fraction(float(power(rank + 1, exponent))) for rank in range(POWER_LAW_RANKS)]
    )


def _is_within(number: Any, low: int, high: int) -> bool:
    """Whether it is a number in the range."""
    try:
        return bool(low <= number <= high)
    except TypeError:
        return False


def _as_written(number: float) -> Fraction:
    """The decimal number: 0.1 is one tenth, not the nearest binary fraction."""
    return Fraction(str(float(number)))


def _integers(numbers: Sequence[Fraction]) -> list[int]:
    """Integers in the same proportion: their sums are exact and fast."""
    scale = lcm(*(number.denominator for number in numbers))
    return [int(number * scale) for number in numbers]


def _by_weight(weight: Callable[[ClickLike], int]) -> Credit:
    def credit(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
        teams = shown.teams
        lead = 0
        for click in clicks:
            team = at_rank(teams, click.rank)
            if team is not None:
                lead += weight(click) if team == "a" else -weight(click)
        return winner(lead)

    return credit
