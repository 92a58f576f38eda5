"""Policies' hot loops as machine code, for long simulations; needs the extra `sim` (numba).

Each policy's kernel follows the policy's own code draw by draw and rounding by rounding: a compiled
course ends in the very state in which a stepped one ends, bit for bit. A new kernel is a file with
its course and one line in the table here.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from streamduel.simulation.course import Course

_COURSES: Final = {
    "beat_the_mean": ("beat_the_mean", "BeatTheMeanCourse"),
    "ccb": ("ccb", "CCBCourse"),
    "double_thompson": ("double_thompson", "DoubleThompsonCourse"),
    "double_thompson_plus": ("double_thompson", "DoubleThompsonCourse"),
    "rmed1": ("rmed", "RMEDCourse"),
    "rmed2": ("rmed", "RMEDCourse"),
    "rmed2fh": ("rmed", "RMEDCourse"),
    "rucb": ("rucb", "RUCBCourse"),
}
"""By a policy's name: the module here and the class in it, imported when it is asked for."""


def names() -> list[str]:
    """The policies that have a kernel."""
    return sorted(_COURSES)


def find(name: str) -> type[Course] | None:
    """The compiled course of a policy.

    Args:
        name: the policy's.

    Returns:
        None if there is none for this policy, or no numba to compile it.
    """
    if name not in _COURSES or find_spec("numba") is None:
        return None
    module, course = _COURSES[name]
    found: type[Course] = getattr(import_module(f"{__name__}.{module}"), course)
    return found
