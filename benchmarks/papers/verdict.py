"""Rules that compare numbers with standard errors with a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

STANDARD_ERRORS: Final = 2.0
"""Standard errors between two numbers that count as different."""

Standing = Literal["holds", "undecided", "fails"]
Verdict = Literal["reproduced", "partly", "not reproduced"]


class Measured(NamedTuple):
    """A number and its standard error; 0 where it is exact."""

    value: float
    error: float = 0.0

    def text(self, digits: int = 0) -> str:
        """`value ± error`."""
        value = f"{self.value:,.{digits}f}"
        return f"{value} ± {self.error:,.{digits}f}" if self.error else value


@dataclass(frozen=True)
class Check:
    """One statement of a claim, and its outcome.

    Attributes:
        claim: as text, with its bound.
        found: the number, as text.
        standing: holds; fails; undecided where the standard error is too large to tell.
    """

    claim: str
    found: str
    standing: Standing


def verdict(checks: Sequence[Check]) -> Verdict:
    """Reproduced if all statements hold, not if none does, else partly.

    >>> verdict([Check("a", "1", "holds"), Check("b", "2", "undecided")])
    'partly'
    """
    held = sum(check.standing == "holds" for check in checks)
    if held and held == len(checks):
        return "reproduced"
    return "partly" if held else "not reproduced"


def below(claim: str, found: Measured, bound: float, digits: int = 2) -> Check:
    """The number is less than the bound, by two standard errors.

    >>> below("less than RUCB", Measured(0.9, 0.02), 1).standing
    'holds'
    """
    slack = STANDARD_ERRORS * found.error
    standing: Standing = "undecided"
    if found.value + slack < bound:
        standing = "holds"
    elif found.value - slack >= bound:
        standing = "fails"
    return Check(claim, found.text(digits), standing)


def above(claim: str, found: Measured, bound: float, digits: int = 2) -> Check:
    """The number is more than the bound, by two standard errors.

    >>> above("five times", Measured(5.1, 0.2), 5).standing
    'undecided'
    """
    mirrored = below(claim, Measured(-found.value, found.error), -bound)
    return Check(claim, found.text(digits), mirrored.standing)


def within(claim: str, found: Measured, low: float, high: float, digits: int = 2) -> Check:
    """The number is from low to high; undecided if it is less than two standard errors outside.

    "At most" is the range from 0.

    >>> within("5 to 10 times", Measured(4.5, 0.3), 5, 10).standing
    'undecided'
    """
    slack = STANDARD_ERRORS * found.error
    standing: Standing = "fails"
    if low <= found.value <= high:
        standing = "holds"
    elif low - slack <= found.value <= high + slack:
        standing = "undecided"
    return Check(claim, found.text(digits), standing)


def is_true(claim: str, found: str, truth: bool) -> Check:
    """An exact statement."""
    return Check(claim, found, "holds" if truth else "fails")


def ratio(one: Measured, other: Measured) -> Measured:
    """one / other of independent numbers, its error to first order.

    >>> ratio(Measured(10, 1), Measured(5, 0)).text(1)
    '2.0 ± 0.2'
    """
    value = one.value / other.value
    return Measured(
        value, abs(value) * math.hypot(one.error / one.value, other.error / other.value)
    )


def mean(values: Sequence[float]) -> Measured:
    """The mean of a sample and its standard error; 0 for a single value."""
    n = len(values)
    center = math.fsum(values) / n
    if n == 1:
        return Measured(center)
    square = math.fsum((value - center) ** 2 for value in values)
    return Measured(center, math.sqrt(square / (n - 1) / n))


def mean_ratio(ones: Sequence[Measured], others: Sequence[Measured]) -> Measured:
    """The ratio of two measurements on the same problems.

    On one problem it is the ratio. On several it is the geometric mean of their ratios, and the
    error is that over the problems, which contains that of the runs.

    >>> mean_ratio([Measured(2), Measured(8)], [Measured(1), Measured(1)]).text(1)
    '4.0 ± 2.8'
    """
    ratios = [ratio(one, other) for one, other in zip(ones, others, strict=True)]
    if len(ratios) == 1:
        return ratios[0]
    logarithm = mean([math.log(each.value) for each in ratios])
    value = math.exp(logarithm.value)
    return Measured(value, value * logarithm.error)


def share(hits: int, trials: int) -> Measured:
    """A probability from a count."""
    p = hits / trials
    return Measured(p, math.sqrt(p * (1 - p) / trials))
