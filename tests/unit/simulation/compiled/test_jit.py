"""Compilation: the same bits, and machine code kept on disk."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from streamduel.preference import logarithm

pytest.importorskip("numba")

from numba.core import caching

from streamduel.simulation.compiled import arithmetic, jit


@jit.compiled
def ln(x: float) -> float:
    return arithmetic.ln(x)


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


def test_machine_code_is_kept_in_a_directory_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit._CONFIG, "CACHE_DIR", str(tmp_path))

    @jit.kernel
    def twice(x: float) -> float:
        return 2 * x

    assert twice(1.5) == 3.0
    (directory,) = tmp_path.iterdir()
    assert directory.name.startswith("streamduel-")
    assert list(directory.rglob("*.nbi"))
    assert str(tmp_path) == jit._CONFIG.CACHE_DIR


def test_another_source_means_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "preference"
    sources.mkdir()
    source = sources / "logarithm.py"
    monkeypatch.setattr(jit, "_PACKAGE", tmp_path)
    found = set()
    for text in ("1", "2", "2"):
        source.write_text(text)
        jit._cache_directory.cache_clear()
        found.add(jit._cache_directory(str(tmp_path / "cache")))
    jit._cache_directory.cache_clear()
    assert len(found) == 2


def test_a_kernel_is_compiled_where_no_directory_is_writable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    @jit.kernel
    def twice(x: float) -> float:
        return 2 * x

    assert twice(1.5) == 3.0


def test_a_directory_that_is_not_writable_is_left_to_numba() -> None:
    assert jit._cache_directory("/dev/null") == "/dev/null"
