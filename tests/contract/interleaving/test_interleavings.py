"""Every interleaving method passes the public checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from streamduel.interleaving import (
    INTERLEAVINGS,
    MULTILEAVINGS,
    Interleaved,
    Multileave,
    RandomBits,
    Team,
    optimised,
)
from streamduel.testing.interleaving import METHOD_CHECKS, MethodUnderTest


def _interleave(
    multileave: Multileave, list_a: Sequence[Any], list_b: Sequence[Any], length: int,
    rng: RandomBits,
) -> Interleaved[Any]:  # fmt: skip
    """A multileaving method with two rankers, a and b."""
    docs, teams = multileave([list_a, list_b], length, rng)
    sides: dict[int | None, Team] = {0: "a", 1: "b", None: None}
    return Interleaved(docs, [sides[team] for team in teams])


TESTED = (
    {name: MethodUnderTest(method) for name, method in INTERLEAVINGS.items()}
    | {
        name: MethodUnderTest(partial(_interleave, method))
        for name, method in MULTILEAVINGS.items()
    }
    | {
        # One coin decides the whole list; its own tests have the size of the bias.
        "balanced": MethodUnderTest(INTERLEAVINGS["balanced"], unbiased=False),
        "probabilistic": MethodUnderTest(INTERLEAVINGS["probabilistic"], keeps_order=False),
        "optimised": MethodUnderTest(
            optimised.interleave,
            lambda list_a, list_b, length: optimised.solve(list_a, list_b, length).draw,
            max_length=optimised.MAX_LENGTH,
        ),
    }
)


def test_every_file_with_a_method_is_registered_under_its_name() -> None:
    methods = {**INTERLEAVINGS, **MULTILEAVINGS}
    assert {name: f"streamduel.interleaving.{name}" for name in methods} == {
        name: method.__module__ for name, method in methods.items()
    }
    assert len(methods) >= 5


@pytest.mark.parametrize("name", TESTED)
@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
def test_method(check: Callable[[MethodUnderTest], None], name: str) -> None:
    check(TESTED[name])


@pytest.mark.parametrize("name", [*INTERLEAVINGS, *MULTILEAVINGS])
def test_a_method_describes_itself(name: str) -> None:
    text = {**INTERLEAVINGS, **MULTILEAVINGS}[name].__doc__ or ""
    for part in ("Args:", "Raises:", ">>>", "Source:"):
        assert part in text
