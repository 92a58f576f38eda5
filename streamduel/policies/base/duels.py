"""Duels as arrays: types of the arguments of `observe`, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from streamduel.errors import PolicyError, shown
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import MAX_DUELS

Arms: TypeAlias = int | Sequence[int] | npt.NDArray[np.integer]
Outcomes: TypeAlias = float | Sequence[float] | npt.NDArray[np.floating | np.integer]
Counts: TypeAlias = Arms | None


@dataclass(slots=True)
class Duels:
    """Many duels, checked.

    Attributes:
        first: (m,) arms.
        second: (m,) arms.
        first_wins: (m,) of 1, 0 or 0.5.
        count: (m,) how many identical duels each entry counts for, or None: one each.
    """

    first: Integers
    second: Integers
    first_wins: Floats
    count: Integers | None = None


def check_duels(
    first: Arms, second: Arms, first_wins: Outcomes, count: Counts, *, n_arms: int, seen: int
) -> Duels:
    """Check the arguments of `observe`, and turn them into arrays.

    Args:
        first: (m,) arms, or one arm.
        second: as `first`.
        first_wins: (m,) of 1, 0 or 0.5 for a tie, or one of them.
        count: (m,) integers from 1, one integer, or None for one duel each.
        n_arms: K; arms are the integers from 0 to K - 1.
        seen: how many duels the policy has counted so far.

    Raises:
        PolicyError: an argument is of another type, length or range.
    """
    duels = Duels(
        _integers("first", first, 0, n_arms - 1, "arms"),
        _integers("second", second, 0, n_arms - 1, "arms"),
        _outcomes(first_wins),
        None if count is None else _integers("count", count, 1, MAX_DUELS, "integers"),
    )
    lengths = {
        "first": len(duels.first),
        "second": len(duels.second),
        "first_wins": len(duels.first_wins),
        **({} if duels.count is None else {"count": len(duels.count)}),
    }
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise PolicyError(f"the arrays of duels must be equally long (found {found}).")
    # In float64, since a sum in int64 may overflow.
    total = len(duels.first) if duels.count is None else duels.count.sum(dtype=np.float64)
    if seen + total > MAX_DUELS:
        raise PolicyError(
            f"a policy must not observe more than {MAX_DUELS} duels (found {seen + total:.0f})"
            "; beyond that their count is not exact."
        )
    return duels


def scalar(value: object) -> object:
    """The only entry of an array or list as a plain number; any other value unchanged."""
    if isinstance(value, np.ndarray):
        return value.item() if value.shape in {(), (1,)} else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple) and len(value) == 1 and type(value[0]) in (int, float):
        return value[0]
    return value


def _integers(name: str, value: object, minimum: int, maximum: int, what: str) -> Integers:
    """(m,) integers from `minimum` to `maximum`."""
    allowed = f"{name} must hold {what} from {minimum} to {maximum}"
    array = _array(value)
    if array is None or (array.dtype.kind not in "iu" and array.size):
        raise PolicyError(f"{allowed} (found {shown(value)}).")
    outside = (array < minimum) | (array > maximum)
    if outside.any():
        raise PolicyError(f"{allowed} (found {array[outside][0]}).")
    return array.astype(np.int64, copy=False)


def _outcomes(value: object) -> Floats:
    """(m,) outcomes of 0, 0.5 or 1."""
    allowed = "first_wins must hold 1, 0, or 0.5 for a tie"
    array = _array(value)
    if array is None or array.dtype.kind not in "iuf":
        raise PolicyError(f"{allowed} (found {shown(value)}).")
    known = (array == 0) | (array == 1) | (array == 0.5)
    if not known.all():
        raise PolicyError(f"{allowed} (found {array[~known][0]}).")
    return array.astype(np.float64, copy=False)


def _array(value: object) -> npt.NDArray[Any] | None:
    """A number or a sequence of numbers as (m,), or None if it is neither.

    numpy would convert a truth value among numbers to 0 or 1, and so hide a wrong argument.
    """
    if isinstance(value, list | tuple) and any(isinstance(one, bool | np.bool_) for one in value):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return None
    array = array.reshape(1) if array.ndim == 0 else array
    return array if array.ndim == 1 else None
