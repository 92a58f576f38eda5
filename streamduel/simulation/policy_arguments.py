"""Policies and their parameters as written on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from streamduel import policies
from streamduel.errors import ConfigurationError, nearest


class _Assignment(NamedTuple):
    """`policy.key=value`; the policy is optional."""

    policy: str | None
    key: str
    value: object


def read_policies(
    wanted: Sequence[str], assignments: Sequence[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Parse the policies of a simulation, each with its parameters.

    `k=v` applies to every policy that has a parameter k, `rucb.k=v` to every entry of that policy,
    and parameters in an entry, as in `rucb:alpha=0.6`, to that entry only. The more specific form
    takes precedence.

    Args:
        wanted: names of policies, with or without parameters of the entry.
        assignments: parameters for all policies, or for one.

    Returns:
        Name and given parameters of each policy; the values are not checked.

    Raises:
        ConfigurationError: an assignment is malformed, or applies to no policy.
        PolicyError: a policy is unknown.

    >>> read_policies(["rucb", "rucb:alpha=0.8"], ["champion_set=true", "rucb.alpha=0.6"])
    [('rucb', {'champion_set': True, 'alpha': 0.6}), ('rucb', {'champion_set': True, 'alpha': 0.8})]
    """
    shared = [_assignment(text) for text in assignments]
    _check_unique("--param", [text.partition("=")[0] for text in assignments])
    entries = [_entry(text) for text in wanted]
    names = [name for name, _ in entries]
    for name in names:
        policies.get(name)
    for each in shared:
        _check_taken(each, names)
    shared.sort(key=lambda each: each.policy is not None)
    return [
        (name, {**{each.key: each.value for each in shared if _is_for(each, name)}, **own})
        for name, own in entries
    ]


def _entry(text: str) -> tuple[str, dict[str, Any]]:
    """A policy's name, and the parameters after the colon."""
    name, _, rest = text.partition(":")
    own = [_assignment(part) for part in rest.split(",")] if rest else []
    _check_unique(f"--policy {text}", [each.key for each in own])
    return name, {each.key: each.value for each in own}


def _assignment(text: str) -> _Assignment:
    """The parts of `policy.key=value` or `key=value`."""
    match = re.fullmatch(r"(?:([\w-]+)\.)?([A-Za-z_]\w*)=(.+)", text)
    if not match:
        raise ConfigurationError(
            f"a parameter must be written as alpha=0.6, or rucb.alpha=0.6 for one policy alone"
            f" (found {text!r})."
        )
    return _Assignment(match[1], match[2], read_value(match[3]))


def read_value(text: str) -> object:
    """A parameter's value: an integer, another number, true or false, or a name.

    >>> [read_value(text) for text in ("7", "1e6", "0.51", "true", "kl_anytime")]
    [7, 1000000.0, 0.51, True, 'kl_anytime']
    """
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_for(each: _Assignment, name: str) -> bool:
    """Whether an assignment applies to a policy."""
    if each.policy is not None:
        return each.policy == name
    return each.key in policies.get(name).declared


def _check_unique(where: str, keys: Iterable[str]) -> None:
    """Refuse a parameter that is given twice."""
    seen = set()
    for key in keys:
        if key in seen:
            raise ConfigurationError(f"{where} has '{key}' twice.")
        seen.add(key)


def _check_taken(each: _Assignment, names: Sequence[str]) -> None:
    """Refuse an assignment that applies to no policy."""
    if any(_is_for(each, name) for name in names):
        return  # the policy itself checks whether k of `rucb.k` is one of its parameters
    if each.policy is not None:
        raise ConfigurationError(
            f"--param {each.policy}.{each.key} is for a policy that is not simulated; there are"
            f" {_listed(names)}{nearest(each.policy, names) or '.'}"
        )
    known = sorted({key for name in names for key in policies.get(name).declared})
    hint = nearest(each.key, known)
    having = f"they have {_listed(known)}" if len(set(names)) > 1 else f"it has {_listed(known)}"
    raise ConfigurationError(
        f"no simulated policy has a parameter '{each.key}'{hint + ' ' if hint else '; '}"
        f"{having[0].upper() + having[1:] if hint else having}."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in dict.fromkeys(names)) or "none"
