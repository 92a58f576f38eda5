"""Every interleaving method passes the public checks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import streamduel
from streamduel.interleaving import (
    INTERLEAVINGS,
    MULTILEAVINGS,
    Interleave,
    Interleaved,
    Multileave,
    RandomBits,
    Team,
    optimised,
)
from streamduel.testing.interleaving import METHOD_CHECKS, MethodUnderTest


def _of_two(multileave: Multileave) -> Interleave:
    """A multileaving method with two rankers, a and b."""

    def interleave(
        list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
    ) -> Interleaved[Any]:
        docs, teams = multileave([list_a, list_b], length, rng)
        sides: dict[int | None, Team] = {0: "a", 1: "b", None: None}
        return Interleaved(docs, [sides[team] for team in teams])

    return interleave


TESTED = (
    {name: MethodUnderTest(method) for name, method in INTERLEAVINGS.items()}
    | {name: MethodUnderTest(_of_two(method)) for name, method in MULTILEAVINGS.items()}
    | {
        # One coin decides the whole list; its own tests have the size of the bias.
        "balanced": MethodUnderTest(INTERLEAVINGS["balanced"], unbiased=False),
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


def test_the_result_does_not_depend_on_hash_order() -> None:
    code = (
        "import random; from tests.contract.interleaving.test_interleavings import TESTED;"
        "up = [f'doc-{n}' for n in range(9)]; down = up[3:] + ['x', 'y'] + up[:3];"
        "print([m.interleave(up, down, 10, random.Random(s)) for m in TESTED.values()"
        " for s in range(5)])"
    )
    root = Path(streamduel.__file__).parents[1]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert "doc-8" in printed.pop()
