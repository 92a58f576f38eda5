"""What credit functions are built from: a list as shown, its clicks, and the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeVar


class ClickLike(Protocol):
    """A click: a `Click` or an object with the same attributes."""

    @property
    def rank(self) -> int:
        """The rank of the clicked document, from 0."""

    @property
    def action(self) -> str:
        """The action, such as `click` or `cart`."""

    @property
    def ts(self) -> int | None:
        """The time in milliseconds, if known."""


class ShownLike(Protocol):
    """A list as it was shown: a `Shown` or an object with the same attributes."""

    @property
    def teams(self) -> Sequence[str | None]:
        """The team of each rank: "a", "b" or None."""

    @property
    def chances(self) -> Sequence[float | None] | None:
        """For each rank the probability that the document came from side a, if known."""


class Click(NamedTuple):
    """A click on a rank (from 0) of an interleaved list; its time in milliseconds, if known."""

    rank: int
    action: str = "click"
    ts: int | None = None


class Shown(NamedTuple):
    """An interleaved list as it was shown.

    Attributes:
        teams: the team of each rank: "a", "b" or None.
        chances: for each rank the probability that the document came from side a, given the list;
            None at ranks of no team. None if unknown.
    """

    teams: Sequence[str | None]
    chances: Sequence[float | None] | None = None


Credit = Callable[[ShownLike, Sequence[ClickLike]], float]
"""A credit function: from a list and its clicks, in their order, to 1.0 (side a wins), 0.0 (side b
wins) or 0.5 (a tie)."""


Need = Literal["order", "ranks"]
"""What a log may not say of its clicks: their order, or their ranks."""


class CreditKind(NamedTuple):
    """An entry of `CREDITS`.

    `summary` says in a few words what makes a side win, and `source` names the papers. With
    `has_parameters`, `function` makes the credit function from parameters. `needs` says what of the
    clicks it uses besides their sides and actions: it says nothing about a log without.
    """

    function: Callable[..., object]
    has_parameters: bool
    summary: str
    source: str
    needs: Sequence[Need] = ()

    @property
    def parameters(self) -> Mapping[str, bool]:
        """The names of the parameters, and whether each is required."""
        if not self.has_parameters:
            return {}
        declared = inspect.signature(self.function).parameters.values()
        return {one.name: one.default is inspect.Parameter.empty for one in declared}


REGISTRY: Final[dict[str, CreditKind]] = {}
"""The registered credit functions; see `CREDITS`."""

_Function = TypeVar("_Function", bound=Callable[..., object])


def credit_function(
    *, summary: str, source: str, has_parameters: bool = False, needs: Sequence[Need] = ()
) -> Callable[[_Function], _Function]:
    """Register a credit function, or one that makes it from parameters; see `CreditKind`."""

    def register(function: _Function) -> _Function:
        REGISTRY[function.__name__] = CreditKind(function, has_parameters, summary, source, needs)
        return function

    return register


def on_ranks(ranks: Iterable[int]) -> list[Click]:
    """Clicks without times, all of the action `click`.

    >>> on_ranks([2])
    [Click(rank=2, action='click', ts=None)]
    """
    return [Click(rank) for rank in ranks]


def winner(lead: float) -> float:
    """The outcome of an impression, by side a's sum minus side b's.

    >>> winner(3), winner(0), winner(-1)
    (1.0, 0.5, 0.0)
    """
    return 1.0 if lead > 0 else 0.0 if lead < 0 else 0.5
