"""Compiling: the same bits, and machine code that is kept or not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamduel.preference import logarithm

pytest.importorskip("numba")

from numba.core import caching

from streamduel.simulation.compiled import jit, rucb
from streamduel.simulation.compiled.logarithm import ln


def test_logarithms_have_the_same_bits() -> None:
    dice = np.random.RandomState(1)
    numbers = [*map(float, range(1, 3000)), *np.exp(dice.uniform(-300, 300, size=3000)).tolist()]
    assert all(ln(x) == logarithm.ln(x) for x in numbers)


def test_products_and_sums_are_not_fused() -> None:
    @jit.compiled
    def residue(x: float, y: float) -> float:
        return x * y - 1.0

    # 0.1 * 10 rounds to 1 before 1 is subtracted.
    assert residue(0.1, 10.0) == 0.0
    assert residue(1e300, 1e300) == math.inf


def test_kept_code_expires_with_any_source() -> None:
    file = rucb.run._cache._cache_file  # type: ignore[attr-defined]
    assert file._source_stamp == jit._digest_of_sources()


def test_without_a_folder_to_write_to_code_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @jit.kernel
    def twice(x: float) -> float:
        return 2 * x

    assert twice(1.5) == 3.0
