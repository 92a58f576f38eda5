"""Credit by what clicks are worth: by their action, or by their rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, Final

from streamduel.errors import InterleavingError
from streamduel.interleaving.credit.shown import ClickLike, Credit, ShownLike, winner
from streamduel.preference.power import power

MOST_WEIGHT: Final = 1000
"""Only the ratio of weights matters, and who wants a larger one leaves nothing to the others."""

MOST_ETA: Final = 10
"""Far above what was ever measured: from 3 on, the tenth rank outweighs a thousand clicks above."""

DEEPEST: Final = 100
"""Ranks of which a power law tells one from the other; hardly anybody reads further."""


def weighted(weights: Mapping[str, float]) -> Credit:
    """The side whose clicks weigh more wins, each click by its action.

    For shops and the like, where to put something into the cart says more than a click, and both
    are logged: `{"cart": 3, "click": 1}`. A negative weight speaks against a document, as `hide`
    may. Actions without a weight count for nobody, and so do clicks on a rank of no team; several
    on a rank count each. A tie: equal sums. They are exact, so that 0.1 and 0.2 weigh as much as
    0.3, and the order of the clicks leaves no trace.

    Args:
        weights: of the actions by name, one at least, each from -1000 to 1000.

    Returns:
        The credit function. It raises IndexError if a rank lies outside the list.

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
        if not _is_within(weight, -MOST_WEIGHT, MOST_WEIGHT):
            raise InterleavingError(
                f"weights must be from -{MOST_WEIGHT} to {MOST_WEIGHT} (found {weight!r} for "
                f"'{action}')."
            )
    worths = dict(
        zip(weights, _integers([_as_written(it) for it in weights.values()]), strict=True)
    )
    return _by_worth(lambda click: worths.get(click.action, 0))


def position_debiased(
    propensities: Sequence[float] | None = None, eta: float | None = None
) -> Credit:
    """The side whose clicks are worth more wins; those at ranks that few look at are worth more.

    A click is worth one divided by its rank's propensity, the probability that a user looks so far
    down. For lists in which one side tends to stand higher, as a service's own way of merging may
    make them, and for users who click several documents: a single click wins, whatever it is worth.
    With team draft both sides stand at each rank equally often, and nothing needs to be corrected.
    Clicks far down are rare, and may be accidents; here they decide.

    Each click counts, of whatever action, also a second one on the same rank; a click on a rank of
    no team counts for nobody. A tie: equal sums. They are exact, for the numbers as they are
    written, so that the order of the clicks leaves no trace.

    Args:
        propensities: per rank, from the first, above 0 and at most 1; ranks beyond have the last
            one's. Only their ratios matter. `estimate_propensities` measures them.
        eta: instead, a power law: the propensity of rank r, from 0, is 1 / (r + 1) ** eta. From 0,
            which is `click_count`, to 10; 1 is usual. Ranks from 100 on have that of rank 99.

    Returns:
        The credit function. It raises IndexError if a rank lies outside the list.

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
    if eta is not None and not _is_within(eta, 0, MOST_ETA):
        raise InterleavingError(f"eta must be from 0 to {MOST_ETA} (found {eta!r}).")
    worths = _power_law(eta) if eta is not None else _inverse(propensities or ())
    last = len(worths) - 1
    return _by_worth(lambda click: worths[min(click.rank, last)])


def _inverse(propensities: Sequence[float]) -> Sequence[int]:
    if not propensities:
        raise InterleavingError("propensities must have one rank at least (found none).")
    for rank, propensity in enumerate(propensities):
        if not _is_within(propensity, 0, 1) or propensity == 0:
            raise InterleavingError(
                f"propensities must be above 0 and at most 1 (found {propensity!r} at rank {rank})."
            )
    return _integers([1 / _as_written(propensity) for propensity in propensities])


@cache  # thousands of experiments may have the same few values
def _power_law(eta: float) -> Sequence[int]:
    exponent = _as_written(eta)
    return _integers([Fraction(float(power(rank + 1, exponent))) for rank in range(DEEPEST)])


def _is_within(number: Any, least: int, most: int) -> bool:
    """Whether it is a number, and in range."""
    try:
        return bool(least <= number <= most)
    except TypeError:
        return False


def _as_written(number: float) -> Fraction:
    """0.1 is one tenth, not the binary fraction next to it."""
    return Fraction(str(float(number)))


def _integers(numbers: Sequence[Fraction]) -> list[int]:
    """Integers in the same proportion: their sums are exact, and fast."""
    scale = lcm(*(number.denominator for number in numbers))
    return [int(number * scale) for number in numbers]


def _by_worth(worth: Callable[[ClickLike], int]) -> Credit:
    def credit(shown: ShownLike, clicks: Sequence[ClickLike]) -> float:
        teams = shown.teams
        lead = 0
        for click in clicks:
            team = teams[click.rank]
            if team is not None:
                lead += worth(click) if team == "a" else -worth(click)
        return winner(lead)

    return credit
