"""Credit functions: which side of an interleaved impression wins by its clicks.

>>> from streamduel.interleaving import credit
>>> weighted = credit.create("weighted", weights={"cart": 3, "click": 1})
>>> weighted(credit.Shown(["a", "b"]), [credit.Click(0), credit.Click(1, "cart")])
0.0

A new credit function is under the decorator `credit_function`, in a file that is imported here;
`streamduel.testing.interleaving` has its contract checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from streamduel.errors import InterleavingError, nearest
from streamduel.interleaving.credit.base import (
    REGISTRY,
    Click,
    ClickLike,
    Credit,
    CreditKind,
    Shown,
    ShownLike,
    credit_function,
    on_ranks,
    winner,
)
from streamduel.interleaving.credit.click_counts import any_click, click_count
from streamduel.interleaving.credit.click_order import first_click, last_click
from streamduel.interleaving.credit.click_weights import (
    MAX_ETA,
    MAX_WEIGHT,
    POWER_LAW_RANKS,
    position_debiased,
    weighted,
)
from streamduel.interleaving.credit.propensities import estimate_propensities
from streamduel.interleaving.credit.team_chances import probabilistic

__all__ = [
    "CREDITS",
    "MAX_ETA",
    "MAX_WEIGHT",
    "POWER_LAW_RANKS",
    "Click",
    "ClickLike",
    "Credit",
    "CreditKind",
    "Shown",
    "ShownLike",
    "any_click",
    "click_count",
    "create",
    "credit_function",
    "estimate_propensities",
    "first_click",
    "last_click",
    "on_ranks",
    "position_debiased",
    "probabilistic",
    "weighted",
    "winner",
]

CREDITS: Final[Mapping[str, CreditKind]] = MappingProxyType(REGISTRY)
"""The credit functions by their names in a configuration; begin with `click_count`."""


def create(name: str, **parameters: Any) -> Credit:
    """Create a credit function of `CREDITS` by its name and its parameters.

    Raises:
        InterleavingError: there is no such credit function, or a parameter is unknown, missing or
            out of range.

    >>> create("first_click", eta=1)
    Traceback (most recent call last):
    streamduel.errors.InterleavingError: credit function 'first_click' has no parameter 'eta'; it
    has none.
    """
    if name not in CREDITS:
        hint = nearest(name, CREDITS) or f"; there are {', '.join(CREDITS)}."
        raise InterleavingError(f"unknown credit function '{name}'{hint}")
    kind = CREDITS[name]
    declared = kind.parameters
    for parameter in parameters:
        if parameter not in declared:
            listed = ", ".join(f"'{one}'" for one in declared) or "none"
            raise InterleavingError(
                f"credit function '{name}' has no parameter '{parameter}'; it has {listed}."
            )
    for parameter, required in declared.items():
        if required and parameter not in parameters:
            raise InterleavingError(f"credit function '{name}' needs '{parameter}'.")
    return cast(Credit, kind.function(**parameters) if kind.has_parameters else kind.function)
