"""Compilation of kernels to machine code with numba, kept on disk between processes."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
from numba.extending import overload

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    # Division by zero gives inf or nan, as in numpy.
    "error_model": "numpy",
    # A private option, present in numba 0.61 to 0.68: no reference counts for arrays. numba does
    # not remove the counts of arrays in named tuples (see its issues 2345 and 2350), and with them
    # a step takes up to seven times as long. A kernel makes no arrays, and its caller holds those
    # that it passes.
    "_nrt": False,
}

_CONFIG: Final[Any] = numba.config
_PACKAGE: Final = Path(__file__).parents[2]
_SOURCES: Final = ("policies", "preference", "simulation/compiled")
"""The folders of streamduel whose code and tables are compiled into kernels."""


def kernel(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile a function at its first call, and keep the machine code on disk.

    There is no `fastmath`: each +, -, *, / and sqrt rounds as in IEEE 754 and in Python, and none
    are fused, so that a kernel decides exactly as the policy's Python code does.

    Args:
        function: takes numbers, arrays and named tuples of them. It may take views of arrays and
            assign to their elements, but must not create arrays. The functions that it calls are
            `compiled`.
    """
    configured = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = _cache_directory(configured)
    try:
        dispatcher = numba.njit(function, cache=True, **_OPTIONS)
    except RuntimeError:  # no directory is writable: each process compiles
        dispatcher = numba.njit(function, **_OPTIONS)
    finally:
        _CONFIG.CACHE_DIR = configured
    return cast(Callable[_Arguments, _Result], dispatcher)


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile a function that kernels call; it is inlined at each call.

    Args:
        function: as for `kernel`.
    """
    return cast(Callable[_Arguments, _Result], numba.njit(function, forceinline=True, **_OPTIONS))


def share(
    function: Callable[_Arguments, _Result],
    implementation: Callable[_Arguments, _Result] | None = None,
) -> Callable[_Arguments, _Result]:
    """Let kernels call a function of the policies' Python code.

    Args:
        function: of numbers only; the functions that it calls are shared, too.
        implementation: what to compile in its place, with the same parameters; None to compile the
            function itself.

    Returns:
        The function as it was: Python code continues to call it uncompiled.
    """
    source = function if implementation is None else implementation
    options: Any = {"forceinline": True, **_OPTIONS}
    overload(function, jit_options=options, strict=False)(lambda *_: source)
    return function


@cache
def _cache_directory(configured: str) -> str:
    """A directory named by a digest of the sources, or what is configured if none is writable.

    numba only checks whether the file of the kernel itself has changed. The digest also covers the
    functions from other files that are compiled into a kernel.

    Args:
        configured: the directory that `NUMBA_CACHE_DIR` names, or an empty string.
    """
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for source in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    parent = Path(configured) if configured else Path(__file__).parent / "__pycache__"
    directory = parent / f"streamduel-{digest.hexdigest()[:16]}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return configured
    return str(directory)
