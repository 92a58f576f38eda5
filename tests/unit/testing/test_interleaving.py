"""The checks of interleaving methods find faulty ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from streamduel.interleaving import Interleave, Interleaved, RandomBits, team_draft
from streamduel.testing.interleaving import (
    MethodUnderTest,
    check_the_arguments_are_not_changed,
    check_the_result_depends_on_the_seed_alone,
)


def reversing(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Changes a ranking."""
    list_a.reverse()  # type: ignore[attr-defined]
    return Interleaved([], [])


def test_a_failed_check_shows_the_values_that_differ() -> None:
    with pytest.raises(AssertionError, match=r"\[3, 2, 1\]"):
        check_the_arguments_are_not_changed(MethodUnderTest(reversing))


def in_hash_order(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Its coin is a hash."""
    coin = random.Random(hash(list_a[0]) + rng.getrandbits(32))
    return team_draft.interleave(list_a, list_b, length, coin)


def of_one_seed(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Does not use its generator."""
    return team_draft.interleave(list_a, list_b, length, random.Random(1))


def random_each_time(
    list_a: Sequence[Any], list_b: Sequence[Any], length: int, rng: RandomBits
) -> Interleaved[Any]:
    """Uses a generator of its own."""
    return team_draft.interleave(list_a, list_b, length, random.SystemRandom())


@pytest.mark.parametrize("method", [in_hash_order, of_one_seed, random_each_time])
def test_a_result_that_depends_on_more_or_less_than_the_seed_is_found(method: Interleave) -> None:
    with pytest.raises(AssertionError, match=r"^assert"):
        check_the_result_depends_on_the_seed_alone(MethodUnderTest(method))
