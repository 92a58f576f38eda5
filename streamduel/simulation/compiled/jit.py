"""Compiling a function to machine code, once per machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba

from streamduel import preference

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_OPTIONS: Final[dict[str, Any]] = {
    # A division by zero gives an infinity or no number, as with numpy.
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
    # Counting references to arrays would take four fifths of the time of a step with few arms. A
    # kernel makes no arrays, and its caller holds all those that it gets.
    "_nrt": False,
}


def kernel(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function as machine code, compiled at its first call and then kept on disk.

    No `fastmath`: every +, -, *, / and sqrt rounds as IEEE 754 says and as Python does, and none
    are fused, so that a kernel's decisions are the interpreted policy's.

    numba keeps machine code next to the source, or where `NUMBA_CACHE_DIR` says, or in the user's
    cache directory. Where none of them can be written, each process compiles anew.

    Args:
        function: of numbers, arrays and named tuples of them. It may take views of arrays, and
            assign their elements one by one, but make no new arrays. What it calls is `compiled`.
    """
    dispatcher: Any = numba.njit(function, **_OPTIONS)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # no folder can be written
        pass
    else:
        _expire_with_any_source(dispatcher)
    return cast(Callable[_Arguments, _Result], dispatcher)


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """A part of kernels: the same function, to be compiled into each place where one calls it.

    Called from Python it is compiled, too, but not kept.

    Args:
        function: as for `kernel`.
    """
    return cast(Callable[_Arguments, _Result], numba.njit(function, forceinline=True, **_OPTIONS))


def _expire_with_any_source(dispatcher: Any) -> None:
    """Let kept code expire when any kernel's source has changed.

    numba asks only for the file of the outermost function, and would go on with an old helper from
    another file that is compiled into it.
    """
    file: Any = getattr(dispatcher._cache, "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = _digest_of_sources()


@cache
def _digest_of_sources() -> str:
    """All that can be compiled into a kernel: this package, and the tables of `preference`."""
    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(preference.__file__).parent):
        for source in sorted(folder.glob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()
