"""Compiled loops of some policies, for long simulations; needs numba, of the extra `sim`.

Each kernel makes the same draws and the same roundings as the policy's own code: a compiled run
ends in the same state as a stepped one, bit for bit. A kernel is a file with its run, and one line
of the table here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from streamduel.simulation.run import Run

_RUNS: Final = {
    "beat_the_mean": "BeatTheMeanRun",
    "ccb": "CCBRun",
    "double_thompson": "DoubleThompsonRun",
    "rmed1": "RMED1Run",
    "rucb": "RUCBRun",
    "top_two": "TopTwoRun",
}
"""By a policy's name, which is also the name of the module here: the class in it."""


def names() -> list[str]:
    """The policies that have a kernel."""
    return sorted(_RUNS)


def find(name: str) -> type[Run] | None:
    """The compiled run of a policy.

    Args:
        name: the policy's name.

    Returns:
        None if there is none for this policy, or numba cannot be imported.
    """
    if name not in _RUNS:
        return None
    try:
        found: type[Run] = getattr(import_module(f"{__name__}.{name}"), _RUNS[name])
    except ImportError:  # not installed, or it refuses the installed numpy
        return None
    return found
