"""Draws from words, against those of the generator."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.policies.base.generator import Generator

pytest.importorskip("numba")

from streamduel.simulation.compiled import random_words

BOUNDS = [1, 2, 3, 5, 64, 1000, 2**31 + 11, 2**32, 2**53, 2**62 + 2**61, 2**63 - 1]


@pytest.mark.parametrize("n", BOUNDS)
def test_draws_are_the_generators(n: int) -> None:
    generator, ahead = Generator(5).words(300), np.zeros(1, dtype=np.int64)
    expected = Generator(5)
    drawn = [random_words.below(n, generator, ahead) for _ in range(100)]
    assert drawn == [expected.below(n) for _ in range(100)]
    # It has taken as many words, rejected ones included: three in four below 2**62 + 2**61.
    rest = Generator(5)
    rest.skip(ahead.item())
    assert rest.state_dict() == expected.state_dict()


def test_words_that_would_favour_a_result_are_rejected() -> None:
    # 2**64 mod 3 is 1: only a product with the low word 0 is rejected.
    source, taken = np.array([0, 0, 2**63, 7], dtype=np.uint64), np.zeros(1, dtype=np.int64)
    assert random_words.below(3, source, taken) == 1
    assert taken.item() == 3


def test_permutations_are_the_generators() -> None:
    source, taken = Generator(3).words(200), np.zeros(1, dtype=np.int64)
    generator = Generator(3)
    for n in (1, 2, 5, 40):
        order = np.empty(n, dtype=np.int64)
        random_words.permute(order, source, taken)
        assert order.tolist() == generator.permutation(n)


def test_rewound_words_are_drawn_again() -> None:
    generator, untouched = Generator(4), Generator(4)
    for drawn, back in ((10, 10), (5, 0), (1000, 999)):
        generator.words(drawn)
        random_words.rewind(generator, back)
        untouched.skip(drawn - back)
        assert generator.state_dict() == untouched.state_dict()
