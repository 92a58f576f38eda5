"""The checks of interleaving methods find faulty ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streamduel.interleaving import Interleaved, RandomBits
from streamduel.testing.interleaving import MethodUnderTest, check_the_arguments_are_not_changed


def reversing(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Changes a ranking."""
    list_a.reverse()  # type: ignore[attr-defined]
    return Interleaved([], [])


def test_a_failed_check_shows_the_values_that_differ() -> None:
    with pytest.raises(AssertionError, match=r"\[3, 2, 1\]"):
        check_the_arguments_are_not_changed(MethodUnderTest(reversing))
