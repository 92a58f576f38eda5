"""Crediting: which side of an interleaved impression its clicks speak for.

>>> from streamduel.interleaving import credit
>>> weighted = credit.create("weighted", weights={"cart": 3, "click": 1})
>>> weighted(credit.Shown(["a", "b"]), [credit.Click(0), credit.Click(1, "cart")])
0.0

A new credit function is a function in one of the files here and a line in `CREDITS`; the contract
tests run on all that stand there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from streamduel.errors import InterleavingError, nearest
from streamduel.interleaving.credit.by_chance import probabilistic
from streamduel.interleaving.credit.by_count import any_click, click_count
from streamduel.interleaving.credit.by_order import first_click, last_click
from streamduel.interleaving.credit.by_worth import position_debiased, weighted
from streamduel.interleaving.credit.propensities import estimate_propensities
from streamduel.interleaving.credit.shown import (
    Click,
    ClickLike,
    Credit,
    Shown,
    ShownLike,
    on_ranks,
)

__all__ = [
    "CREDITS",
    "Click",
    "ClickLike",
    "Credit",
    "CreditKind",
    "Shown",
    "ShownLike",
    "any_click",
    "click_count",
    "create",
    "estimate_propensities",
    "first_click",
    "last_click",
    "on_ranks",
    "position_debiased",
    "probabilistic",
    "weighted",
]


class CreditKind(NamedTuple):
    """A credit function before it has its parameters.

    Attributes:
        make: makes it of them, given by name.
        summary: what it does, half a sentence.
        source: the papers.
    """

    make: Callable[..., Credit]
    summary: str
    source: str

    @property
    def parameters(self) -> Mapping[str, bool]:
        """Their names, and whether each must be given."""
        declared = inspect.signature(self.make).parameters.values()
        return {one.name: one.default is inspect.Parameter.empty for one in declared}


def _ready(credit: Credit) -> Callable[[], Credit]:
    return lambda: credit


CREDITS: Final[Mapping[str, CreditKind]] = MappingProxyType(
    {
        "click_count": CreditKind(
            _ready(click_count), "more clicks", "Radlinski, Kurup and Joachims, CIKM 2008"
        ),
        "any_click": CreditKind(
            _ready(any_click),
            "a click, where the other side has none",
            "after Radlinski, Kurup and Joachims, CIKM 2008",
        ),
        "first_click": CreditKind(
            _ready(first_click), "the first click", "after Yue et al., SIGIR 2010"
        ),
        "last_click": CreditKind(
            _ready(last_click), "the last click", "after Yue et al., SIGIR 2010"
        ),
        "weighted": CreditKind(
            weighted,
            "more weight of clicks, by their action",
            "Schuth, Hofmann and Radlinski, SIGIR 2015; Yue et al., SIGIR 2010",
        ),
        "position_debiased": CreditKind(
            position_debiased,
            "more clicks, each by the inverse propensity of its rank",
            "Joachims, Swaminathan and Schnabel, WSDM 2017",
        ),
        "probabilistic": CreditKind(
            _ready(probabilistic),
            "more clicks in more of the likely assignments",
            "Hofmann, Whiteson and de Rijke, CIKM 2011",
        ),
    }
)
"""The credit functions by the name that a configuration gives them; begin with `click_count`."""


def create(name: str, **parameters: Any) -> Credit:
    """A credit function, ready to use.

    Args:
        name: of `CREDITS`.
        **parameters: what it needs, by name.

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
    for given in parameters:
        if given not in declared:
            listed = ", ".join(f"'{one}'" for one in declared) or "none"
            raise InterleavingError(
                f"credit function '{name}' has no parameter '{given}'; it has {listed}."
            )
    for needed, required in declared.items():
        if required and needed not in parameters:
            raise InterleavingError(f"credit function '{name}' needs '{needed}'.")
    return kind.make(**parameters)
