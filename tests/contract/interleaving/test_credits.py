"""Every credit function passes the public checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamduel.interleaving.credit import CREDITS, create
from streamduel.testing.interleaving import CREDIT_CHECKS, CreditUnderTest

PARAMETRIC = {
    "weighted": create("weighted", weights={"click": 0.1, "cart": 0.3}),
    "weighted, one action": create("weighted", weights={"click": 1}),
    "position_debiased": create("position_debiased", propensities=[1, 0.7, 0.1]),
    "position_debiased, power law": create("position_debiased", eta=0.7),
}

TESTED = {
    name: CreditUnderTest(create(name), uses_order="order" in kind.needs)
    for name, kind in CREDITS.items()
    if not kind.has_parameters
} | {name: CreditUnderTest(credit) for name, credit in PARAMETRIC.items()}


def test_every_credit_function_is_checked() -> None:
    assert {name.partition(",")[0] for name in TESTED} == CREDITS.keys()


@pytest.mark.parametrize("name", TESTED)
@pytest.mark.parametrize("check", CREDIT_CHECKS, ids=lambda check: check.__name__)
def test_credit(check: Callable[[CreditUnderTest], None], name: str) -> None:
    check(TESTED[name])


@pytest.mark.parametrize("name", CREDITS)
def test_a_credit_function_describes_itself(name: str) -> None:
    text = CREDITS[name].function.__doc__ or ""
    for part in ("Args:", "Returns:", "Raises:", "IndexError", "A tie:", ">>>", "Source:"):
        assert part in text
    assert CREDITS[name].summary
    assert CREDITS[name].source
