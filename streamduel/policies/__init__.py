"""Dueling bandits, one file each; a policy never does I/O.

>>> from streamduel import policies
>>> policy = policies.create("rucb", n_arms=3, seed=7, alpha=0.6)
>>> policy.propose(2).shape
(2, 2)

A new policy is a file with its class and one line of import here: what is imported is registered,
and the contract tests run on all that is registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamduel.errors import PolicyError, nearest
from streamduel.policies.auto import Auto
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.policy import Policy
from streamduel.policies.beat_the_mean import BeatTheMean
from streamduel.policies.c2b import C2B
from streamduel.policies.ccb import CCB
from streamduel.policies.copeland_pbr import CopelandPBR
from streamduel.policies.double_thompson import DoubleThompson, DoubleThompsonPlus
from streamduel.policies.interleaved_filter import InterleavedFilter1, InterleavedFilter2
from streamduel.policies.merge_dts import MergeDTS
from streamduel.policies.merge_rucb import MergeRUCB
from streamduel.policies.pcomp import PComp
from streamduel.policies.relative_confidence_sampling import RelativeConfidenceSampling
from streamduel.policies.rmed1 import RMED1
from streamduel.policies.rmed2 import RMED2
from streamduel.policies.rmed2fh import RMED2FH
from streamduel.policies.rucb import RUCB
from streamduel.policies.savage import CondorcetSavage, CopelandSavage
from streamduel.policies.scb import SCB
from streamduel.policies.uniform import Uniform

__all__ = [
    "C2B",
    "CCB",
    "RMED1",
    "RMED2",
    "RMED2FH",
    "RUCB",
    "SCB",
    "Auto",
    "BeatTheMean",
    "CondorcetSavage",
    "CopelandPBR",
    "CopelandSavage",
    "DoubleThompson",
    "DoubleThompsonPlus",
    "Duels",
    "InterleavedFilter1",
    "InterleavedFilter2",
    "MergeDTS",
    "MergeRUCB",
    "PComp",
    "Policy",
    "RelativeConfidenceSampling",
    "Uniform",
    "create",
    "from_state",
    "get",
    "names",
]

_REGISTERED: dict[str, type[Policy]] = {
    item.name: item
    for item in list(globals().values())
    if isinstance(item, type) and issubclass(item, Policy) and item is not Policy
}


def names() -> list[str]:
    """The names of all policies, in alphabetical order."""
    return sorted(_REGISTERED)


def get(name: str) -> type[Policy]:
    """The class of a policy: its `summary`, `paper`, and the parameters it has `declared`.

    Args:
        name: as in `names()`.

    Raises:
        PolicyError: there is no such policy.

    >>> for parameter in get("rucb").declared.values():
    ...     print(parameter.name, parameter.symbol, parameter.default, parameter.allowed, sep=" | ")
    alpha | α | 0.51 | a finite number greater than 0.5
    champion_set | B | False | true or false
    window | τ | None | an integer at least 16
    >>> get("rubc")
    Traceback (most recent call last):
        ...
    streamduel.errors.PolicyError: unknown policy 'rubc'; did you mean 'rucb'? 'streamduel policies'
    lists all.
    """
    try:
        return _REGISTERED[name]
    except (KeyError, TypeError):
        hint = nearest(str(name), names()) or ";"
        raise PolicyError(
            f"unknown policy '{name}'{hint} 'streamduel policies' lists all."
        ) from None


def create(name: str, n_arms: int, seed: int = 0, **parameters: object) -> Policy:
    """A new policy that has seen nothing.

    Args:
        name: as in `names()`.
        n_arms: K, at least 2.
        seed: of the policy's generator, an integer from 0.
        **parameters: those that the policy declares.

    Raises:
        PolicyError: the policy is unknown, or an argument is not allowed.
    """
    return get(name)(n_arms, seed=seed, **parameters)


def from_state(state: Mapping[str, Any]) -> Policy:
    """The policy whose `state_dict()` this was, of whichever class it is.

    Args:
        state: a policy's state.

    Raises:
        PolicyError: it is not a state of a known policy.
    """
    if not isinstance(state, Mapping) or "policy" not in state:
        raise PolicyError("a policy's state must be a mapping that names its 'policy'.")
    return get(state["policy"]).from_state(state)
