"""Interleaving methods, one file each; `credit` turns the clicks on a list into a winner.

>>> from random import Random
>>> from streamduel.interleaving import INTERLEAVINGS
>>> sorted(INTERLEAVINGS)
['balanced', 'optimised', 'probabilistic', 'team_draft']
>>> INTERLEAVINGS["team_draft"](["d1", "d2", "d3"], ["d2", "d4", "d1"], 4, Random(2))
Interleaved(docs=['d1', 'd2', 'd3', 'd4'], teams=['a', 'b', 'a', 'b'])

A new method is a file here with a function `interleave` (or `multileave`); its name is the file's
name. A function `chances` in the same file is registered, too.

In all methods `list_a` and `list_b` are the document ids of two rankers, the best first, of any
hashable type. The functions that analyse an impression (`credit`, `expected_credit`, `chances`,
`worth_of`) also take `docs`, the documents shown, and `ranks`, the clicked ranks from 0; repeated
ranks count repeatedly. They raise InterleavingError if a document is in neither ranking or was
shown twice, and IndexError if a rank is outside the list.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from streamduel.interleaving.base import (
    Chances,
    Interleave,
    Interleaved,
    Multileave,
    Multileaved,
    RandomBits,
    Team,
)

__all__ = [
    "CHANCES",
    "INTERLEAVINGS",
    "MULTILEAVINGS",
    "Chances",
    "Interleave",
    "Interleaved",
    "Multileave",
    "Multileaved",
    "RandomBits",
    "Team",
]


def _functions(name: str) -> Mapping[str, Any]:
    """The function of this name in each file that defines one, by the file's name."""
    files = [file.name for file in pkgutil.iter_modules(__path__)]
    modules = {file: import_module(f"{__name__}.{file}") for file in files}
    found = {file: getattr(made, name, None) for file, made in modules.items()}
    return MappingProxyType({file: function for file, function in found.items() if function})


INTERLEAVINGS: Final[Mapping[str, Interleave]] = _functions("interleave")
"""The methods for two rankers by name; begin with `team_draft`."""

MULTILEAVINGS: Final[Mapping[str, Multileave]] = _functions("multileave")
"""The methods for two or more rankers by name."""

CHANCES: Final[Mapping[str, Chances]] = _functions("chances")
"""For methods that know it: how likely the document of each rank was to come from side a."""
