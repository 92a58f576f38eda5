"""Dueling-bandit policies, one file each; a policy does no I/O.

>>> from streamduel import policies
>>> policy = policies.create("rucb", n_arms=3, seed=7, alpha=0.6)
>>> policy.propose(2).shape
(2, 2)

A new policy is a file in this folder: every concrete subclass of `Policy` in it is registered under
its `name`. `policies.base` holds what the policies are built from.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any, Final

from streamduel.errors import PolicyError, nearest
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.policy import Policy

__all__ = ["DEFAULT", "Duels", "Policy", "create", "from_state", "get", "names"]

DEFAULT: Final = "top_two"
"""The policy of an experiment, a simulation or a demo that names none."""


def _find() -> dict[str, type[Policy]]:
    """The policies of the modules in this folder, by name."""
    found: dict[str, type[Policy]] = {}
    for name in sorted(module.name for module in iter_modules(__path__) if not module.ispkg):
        module = import_module(f"{__name__}.{name}")
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and issubclass(item, Policy)
                and item.__module__ == module.__name__
                and not isabstract(item)
            ):
                found[item.name] = item
    return found


_POLICIES = _find()
_CLASSES = {policy.__name__: policy for policy in _POLICIES.values()}


def __getattr__(name: str) -> type[Policy]:
    """The class of a policy, such as `streamduel.policies.RUCB`."""
    try:
        return _CLASSES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*__all__, *_CLASSES])


def names() -> list[str]:
    """The names of all policies, in alphabetical order."""
    return sorted(_POLICIES)


def get(name: str) -> type[Policy]:
    """The class of a policy, with its `summary`, `paper` and `declared` parameters.

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
        return _POLICIES[name]
    except (KeyError, TypeError):
        hint = nearest(str(name), names()) or ";"
        raise PolicyError(
            f"unknown policy '{name}'{hint} 'streamduel policies' lists all."
        ) from None


def create(name: str, n_arms: int, seed: int = 0, **parameters: object) -> Policy:
    """A new policy without any duels.

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
    """The policy that returned this state, of any class.

    Args:
        state: what `Policy.state_dict` returned.

    Raises:
        PolicyError: it is not a state of a known policy.
    """
    if not isinstance(state, Mapping) or "policy" not in state:
        raise PolicyError("a policy's state must be a mapping with the key 'policy'.")
    return get(state["policy"]).from_state(state)
