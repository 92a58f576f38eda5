"""Parameters of policies: name, meaning, default and allowed values, declared once.

A policy declares its parameters in its class body:

    alpha = Real(symbol="α", above=0.5, default=0.51, meaning="how wide the bounds are")

This line defines the constructor's keyword, the check of its value there and in a configuration,
the row of the table that `streamduel policies` prints, and `policy.alpha`.
"""

from __future__ import annotations

import inspect
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, overload

import numpy as np

from streamduel.errors import ParameterError, PolicyError, nearest, shown
from streamduel.preference.counts import MAX_DUELS

Value = TypeVar("Value", bound=float | str | list[list[float]])

_MAX_REAL: Final = 1e15
"""The largest number; the smallest is its reciprocal. Values outside overflow in formulas."""

Derivation: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The default of a parameter from the others' values."""

_LIMITS: Final = {
    "above": ("greater than", operator.gt),
    "at_least": ("at least", operator.ge),
    "below": ("less than", operator.lt),
    "at_most": ("at most", operator.le),
}


def as_written(value: object) -> str:
    """A value as configurations and the command line write it.

    >>> as_written(True), as_written(0.51)
    ('true', '0.51')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


class Parameter(ABC, Generic[Value]):
    """A declared parameter: on the class of a policy the declaration, on a policy the value.

    Args:
        symbol: its symbol in the paper.
        meaning: its effect, half a sentence.
        default: the value if it is left out; None makes the parameter required, unless it is
            derived or optional.
        derived: a default that depends on the other parameters: as text, and as a function of them.
        reason: why no other values are allowed; error messages end with it.
        optional: whether it may be left out, or None, without a default; it is off then.
        **limits: of a number: any of `above`, `at_least`, `below` and `at_most`.

    Attributes:
        name: the constructor's keyword and the configuration's key.
        required: whether it must be given.
    """

    kind: str
    """The type in words, as it completes "must be ..."."""

    def __init__(
        self,
        *,
        symbol: str,
        meaning: str,
        default: Value | None = None,
        derived: tuple[str, Derivation] | None = None,
        reason: str = "",
        optional: bool = False,
        **limits: float,
    ) -> None:
        self.name = ""
        self.symbol = symbol
        self.meaning = self.__doc__ = meaning
        self.default = default
        self.derived = derived
        self.optional = optional
        self.required = default is None and derived is None and not optional
        self.reason = reason
        self._limits = [(*_LIMITS[name], limit) for name, limit in limits.items()]
        self._range = " and ".join(f"{words} {limit}" for words, _, limit in self._limits)

    @property
    def default_text(self) -> str:
        """The default as text; empty for a required parameter."""
        if self.derived is not None:
            return self.derived[0]
        if self.optional:
            return "none"
        return "" if self.default is None else as_written(self.default)

    @property
    def allowed(self) -> str:
        """The type and the range in words, as it completes "must be ..."."""
        return f"{self.kind} {self._range}".rstrip()

    def check(self, value: object) -> Value:
        """The value, in this parameter's type.

        Raises:
            PolicyError: the value is of another type or out of range.
        """
        typed = self._typed(value)
        if typed is None:
            raise ParameterError(self.name, f"must be {self.kind} (found {shown(value)}).")
        if not all(holds(typed, limit) for _, holds, limit in self._limits):
            reason = f"; {self.reason}" if self.reason else ""
            raise ParameterError(
                self.name, f"must be {self._range} (found {shown(typed)}){reason}."
            )
        return typed

    def for_arms(self, value: Value, kept: Sequence[int | None]) -> Value:  # noqa: ARG002
        """The value when arms join or leave; `kept` as for `with_arms`. The same by default."""
        return value

    @abstractmethod
    def _typed(self, value: object) -> Value | None:
        """The value in this parameter's type, or None if it has another type."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, policy: None, owner: type) -> Parameter[Value]: ...
    @overload
    def __get__(self, policy: object, owner: type) -> Value: ...
    def __get__(self, policy: Any, owner: type) -> Parameter[Value] | Value:
        if policy is None:
            return self
        value: Value = policy._parameters.get(self.name)  # None for an optional one that is off
        return value

    def __set__(self, policy: object, value: object) -> None:
        raise AttributeError(f"policy.{self.name} cannot be changed; create another policy.")


class _Number(Parameter[Value]):
    """A number; those beyond `extremes` are refused in any case."""

    extremes: ClassVar[tuple[float, float]]
    """The smallest absolute value other than 0, and the largest."""

    def check(self, value: object) -> Value:
        number: Any = super().check(value)
        minimum, maximum = self.extremes
        if number and not minimum <= abs(number) <= maximum:
            bound = (
                f"at most {maximum:g}" if abs(number) > maximum else f"0 or at least {minimum:g}"
            )
            raise ParameterError(self.name, f"must be {bound} (found {shown(number)}).")
        checked: Value = number
        return checked


class Real(_Number[float]):
    """A finite number.

    >>> class Policy:
    ...     alpha = Real(symbol="α", above=0.5, default=0.51, meaning="how wide the bounds are")
    >>> Policy.alpha.allowed
    'a finite number greater than 0.5'
    >>> Policy.alpha.check(0.3)
    Traceback (most recent call last):
        ...
    streamduel.errors.ParameterError: policy.alpha must be greater than 0.5 (found 0.3).
    """

    kind = "a finite number"
    extremes = (1 / _MAX_REAL, _MAX_REAL)

    def _typed(self, value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            return None
        try:
            number = float(value)
        except (OverflowError, TypeError):  # an integer beyond all floats; a complex number
            return None
        return number if math.isfinite(number) else None


class Whole(_Number[int]):
    """An integer; a float such as `1e6` is accepted if it is integral."""

    kind = "an integer"
    extremes = (1, MAX_DUELS)  # no policy counts more

    def _typed(self, value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer):
            return None
        return int(value) if not isinstance(value, float) or value.is_integer() else None


class Horizon(Whole):
    """T, the planned number of duels; `Policy.check_parameters` checks that it is at least K."""

    allowed = "an integer at least K, the number of arms"

    def __init__(self) -> None:
        super().__init__(
            symbol="T",
            at_least=2,
            meaning="number of duels planned; afterwards only the champion is served",
        )


class Flag(Parameter[bool]):
    """True or false; other types are not coerced."""

    kind = "true or false"

    def _typed(self, value: object) -> bool | None:
        return bool(value) if isinstance(value, bool | np.bool_) else None


class Choice(Parameter[str]):
    """One of a few names.

    Args:
        options: the names.
        **declaration: as for every parameter.
    """

    def __init__(self, *options: str, **declaration: Any) -> None:
        super().__init__(**declaration)
        self.options = options
        self.kind = f"one of {_listed(options)}"

    def check(self, value: object) -> str:
        """The value, if it is one of the options; the error names the closest one."""
        if isinstance(value, str) and value not in self.options:
            end = nearest(value, self.options) or "."
            raise ParameterError(self.name, f"must be {self.kind} (found {shown(value)}){end}")
        return super().check(value)

    def _typed(self, value: object) -> str | None:
        return value if isinstance(value, str) else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def check_parameters(
    policy: str, declared: Mapping[str, Parameter[Any]], given: Mapping[str, object]
) -> dict[str, Any]:
    """Every declared parameter that is not off, with its value, given or default.

    Args:
        policy: the policy's name, for error messages.
        declared: the declarations by name.
        given: values by name.

    Raises:
        PolicyError: a name is unknown, a required one is missing, or a value is not allowed.
    """
    for name in given:
        if name not in declared:
            hint = nearest(str(name), declared)
            it_has = f"{hint} It has" if hint else "; it has"
            raise PolicyError(
                f"policy '{policy}' has no parameter '{name}'"
                f"{it_has} {_listed(list(declared)) or 'none'}."
            )
    for parameter in declared.values():
        if parameter.required and parameter.name not in given:
            raise PolicyError(
                f"policy '{policy}' needs policy.{parameter.name}, {parameter.allowed}"
                f" ({parameter.meaning})."
            )
    values = {
        name: parameter.check(given.get(name, parameter.default))
        for name, parameter in declared.items()
        if (name in given or parameter.derived is None)
        and not (parameter.optional and given.get(name) is None)
    }
    for name, parameter in declared.items():
        if name not in values and parameter.derived is not None:
            values[name] = parameter.check(parameter.derived[1](values))
    return {name: values[name] for name in declared if name in values}


def signature(declared: Mapping[str, Parameter[Any]]) -> inspect.Signature:
    """The constructor's signature, for `help` and for editors."""
    keyword, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter("n_arms", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            inspect.Parameter("seed", keyword, default=0),
            *(
                inspect.Parameter(name, keyword, default=empty if one.required else one.default)
                for name, one in declared.items()
            ),
        ]
    )


def integer(what: str, value: object, minimum: int) -> int:
    """The value as an int.

    Raises:
        PolicyError: it is not an integer from `minimum`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise PolicyError(f"{what} must be an integer from {minimum} (found {shown(value)}).")
    return int(value)
