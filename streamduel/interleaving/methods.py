"""All interleaving methods by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from streamduel.interleaving import (
    balanced,
    optimised,
    probabilistic,
    team_draft,
    team_draft_multileaving,
)
from streamduel.interleaving.bits import RandomBits
from streamduel.interleaving.interleaved import Interleaved
from streamduel.interleaving.team_draft_multileaving import Multileaved

Interleave = Callable[[Sequence[Any], Sequence[Any], int, RandomBits], Interleaved[Any]]
"""From two rankings, a length and a source of randomness to the list to be shown."""

Multileave = Callable[[Sequence[Sequence[Any]], int, RandomBits], Multileaved[Any]]
"""The same of any number of rankings."""

INTERLEAVINGS: Final[Mapping[str, Interleave]] = MappingProxyType(
    {
        "balanced": balanced.interleave,
        "optimised": optimised.interleave,
        "probabilistic": probabilistic.interleave,
        "team_draft": team_draft.interleave,
    }
)
"""The methods for two rankers; begin with `team_draft`."""

MULTILEAVINGS: Final[Mapping[str, Multileave]] = MappingProxyType(
    {"team_draft_multileaving": team_draft_multileaving.multileave}
)
"""The methods for more than two."""
