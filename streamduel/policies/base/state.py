"""The state of a policy: declared once as structs, checked by them, and moved to and from JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from streamduel.errors import PolicyError

_ARM: Final = Meta(ge=0, description="an arm, below K")

Arm: TypeAlias = Annotated[int, _ARM]
"""An arm. That it is below K is checked wherever it is part of a `State`."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Wins: TypeAlias = list[list[Annotated[float, Meta(ge=0)]]]
"""(K, K) numbers from 0."""


class State(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What an algorithm keeps that does not follow from its counts; a policy declares a subclass.

    Field `x` saves and restores the policy's attribute `_x`. This needs no code: the types of the
    fields check a restored state, fields of type `Arm` must be below K, and arrays must have the
    shape that the policy gave them in `_begin`. In the state, an array of truth values is the
    ascending list of the indices that are true, one list per row; any other array is a list.
    An attribute with the methods `save` and `restore` has a state of its own.
    """


Saved = TypeVar("Saved")


def convert(saved: object, kind: type[Saved], what: str) -> Saved:
    """A state of this type; `what` it is, for the error message.

    Raises:
        PolicyError: a field is missing or unknown, or of another type or range.
    """
    try:
        return msgspec.convert(saved, kind)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{what} is damaged: {str(error).replace(' - at', ' at')}.") from error


def save(owner: object, kind: type[State]) -> dict[str, Any]:
    """The attributes of the owner that the fields of its state name, as JSON can hold them."""
    return {name: _plain(getattr(owner, f"_{name}")) for name in kind.__struct_fields__}


def restore(
    owner: object, kind: type[State], saved: Mapping[str, Any], n_arms: int, what: str
) -> None:
    """Set the attributes of the owner to what `save` returned.

    Args:
        owner: an object whose attributes have their initial values.
        kind: the type of its state.
        saved: the state.
        n_arms: K.
        what: the name of the state, for error messages.

    Raises:
        PolicyError: this is not such a state.
    """
    state = convert(saved, kind, what)
    for name in kind.__struct_fields__:
        value, present = getattr(state, name), getattr(owner, f"_{name}")
        if name in _fields_of_arms(kind) and any(arm >= n_arms for arm in _numbers(value)):
            raise PolicyError(f"{name} must hold arms from 0 to {n_arms - 1} (found {value}).")
        if isinstance(present, np.ndarray):
            value = _array(name, value, like=present)
        elif hasattr(present, "restore"):
            present.restore(value)
            continue
        setattr(owner, f"_{name}", value)


def _plain(value: Any) -> Any:
    """A copy as JSON can hold it."""
    if hasattr(value, "save"):
        return value.save()
    if not isinstance(value, np.ndarray):
        return msgspec.json.decode(msgspec.json.encode(value))
    if value.dtype != np.bool_:
        return value.tolist()
    return value.nonzero()[0].tolist() if value.ndim == 1 else [_plain(row) for row in value]


def _array(name: str, saved: Any, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array of which `_plain` made this, of the same shape as another one."""
    if like.dtype != np.bool_:
        array = np.array(saved, dtype=like.dtype)
        if array.shape != like.shape:
            raise PolicyError(f"{name} must be of shape {like.shape} (found {array.shape}).")
        return array
    rows, array = [saved] if like.ndim == 1 else saved, np.zeros_like(like)
    table = array.reshape(-1, like.shape[-1])
    for row, places in zip(table, rows, strict=True):
        if places != sorted(set(places)):
            raise PolicyError(f"{name} must hold different numbers, ascending (found {places}).")
        row[places] = True
    return array


@cache
def _fields_of_arms(kind: type[State]) -> frozenset[str]:
    """The fields that hold arms."""
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if _mentions_arms(hint))


def _mentions_arms(hint: object) -> bool:
    return _ARM in getattr(hint, "__metadata__", ()) or any(map(_mentions_arms, get_args(hint)))


def _numbers(value: Any) -> Iterator[int]:
    """All numbers in nested lists."""
    if isinstance(value, int):
        yield value
    elif value is not None:
        for part in value:
            yield from _numbers(part)
