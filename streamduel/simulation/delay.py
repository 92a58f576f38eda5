"""Delays of outcomes, as the number of further duels until an outcome is observed."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal

from typing_extensions import override

from streamduel.errors import ConfigurationError
from streamduel.policies.base.generator import Generator


class Delay(ABC):
    """A distribution of delays in duels; with 0 the outcome is observed before the next duel."""

    @abstractmethod
    def draw(self, generator: Generator) -> int:
        """One delay."""


@dataclass(frozen=True, slots=True)
class FixedDelay(Delay):
    """A constant delay, from 0."""

    duels: int

    @override
    def draw(self, generator: Generator) -> int:
        return self.duels

    def __str__(self) -> str:
        return f"{self.duels}"


@dataclass(frozen=True, slots=True)
class UniformDelay(Delay):
    """Each delay from `least` to `most` has the same probability."""

    least: int
    most: int

    @override
    def draw(self, generator: Generator) -> int:
        return self.least + generator.below(self.most - self.least + 1)

    def __str__(self) -> str:
        return f"uniform:{self.least}-{self.most}"


@dataclass(frozen=True, slots=True)
class GeometricDelay(Delay):
    """After each duel the outcome is observed with probability 1 / (1 + mean); the mean is > 0."""

    mean: float

    @override
    def draw(self, generator: Generator) -> int:
        u = (generator.below(1 << 53) + 1) * 2.0**-53  # in (0, 1]
        return int(math.log(u) / -math.log1p(1 / self.mean))

    def __str__(self) -> str:
        return f"geometric:{_written(self.mean)}"


def _written(number: float) -> str:
    """A number with all digits and without an exponent, as `read_delay` accepts it.

    >>> _written(20.0), _written(123456.75), _written(0.00001)
    ('20', '123456.75', '0.00001')
    """
    text = f"{Decimal(repr(float(number))):f}"
    return text.removesuffix(".0")


def read_delay(text: str) -> Delay:
    """Parse a delay as written on the command line.

    Args:
        text: `20`, `uniform:10-30` or `geometric:20`.

    Raises:
        ConfigurationError: the text has none of these forms.

    >>> read_delay("uniform:10-30")
    UniformDelay(least=10, most=30)
    >>> str(read_delay("geometric:20"))
    'geometric:20'
    """
    if re.fullmatch(r"\d{1,9}", text):
        return FixedDelay(int(text))
    if match := re.fullmatch(r"uniform:(\d{1,9})-(\d{1,9})", text):
        least, most = map(int, match.groups())
        if least <= most:
            return UniformDelay(least, most)
    if match := re.fullmatch(r"geometric:(\d{1,9}(?:\.\d+)?)", text):
        mean = float(match[1])
        if mean > 0:
            return GeometricDelay(mean)
    raise ConfigurationError(
        "the delay must be a number of duels from 0 as in 20, uniform:10-30 or geometric:20"
        f" (found {text!r})."
    )
