"""Policies under test, and simulated users."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from streamduel.policies import Policy

ARMS: Final = 5
_EXAMPLES: Final = 20
_SHORT: Final = 1_000
"""With a window below, a policy forgets before it can find a winner."""


@dataclass(frozen=True)
class PolicyUnderTest:
    """A policy with its parameters.

    Attributes:
        kind: the class of the policy.
        parameters: those that have no default, and others to be tested. Without a value for
            `horizon`, policies that need one get 10,000.
    """

    kind: type[Policy]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def new(self, n_arms: int = ARMS, seed: int = 3) -> Policy:
        """A policy without any duels."""
        required = [one.name for one in self.kind.declared.values() if one.required]
        values = {**dict.fromkeys(required, 10_000), **self.parameters}
        return self.kind(n_arms, seed=seed, **values)

    @property
    def remembers(self) -> bool:
        """Whether it uses enough duels to find a winner, and to know it after a thousand more."""
        window = self.parameters.get("window")
        return window is None or window > _SHORT


Check: TypeAlias = Callable[[PolicyUnderTest], None]


class Duel(NamedTuple):
    """One entry of `observe`."""

    first: int
    second: int
    first_wins: float
    times: int


def examples() -> Iterator[random.Random]:
    """Sources of examples, equal in every run; the first one gives the smallest examples."""
    return (random.Random(number) for number in range(_EXAMPLES))


def duels(luck: random.Random, least: int = 0, most: int = 60) -> list[Duel]:
    """Duels of any pairs in any order, with ties, self-duels and aggregated ones."""
    arms = range(luck.randint(1, ARMS))
    return [
        Duel(luck.choice(arms), luck.choice(arms), luck.choice((0.0, 0.5, 1.0)), luck.randint(1, 4))
        for _ in range(luck.choice((least, luck.randint(least, most), most)))
    ]


def observe(policy: Policy, observed: Sequence[Duel]) -> None:
    """Let the policy observe all duels in one call."""
    if observed:
        policy.observe(*(np.array(column) for column in zip(*observed, strict=True)))


def play(
    policy: Policy, steps: int, seed: int = 11, *, batch: int = 1, edge: float = 0.2
) -> list[list[int]]:
    """Let the policy propose and simulated users answer; the lower arm wins more often by `edge`.

    One answer in ten is a tie.

    Returns:
        The proposed pairs.
    """
    luck = random.Random(seed)
    played: list[list[int]] = []
    for _ in range(steps // batch):
        pairs = policy.propose(batch).tolist()
        outcomes = [
            0.5
            if luck.random() < 0.1
            else float(luck.random() < 0.5 + edge * ((second > first) - (second < first)))
            for first, second in pairs
        ]
        policy.observe([pair[0] for pair in pairs], [pair[1] for pair in pairs], outcomes)
        played += pairs
    return played


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    """The state after a round trip through JSON text, which has no NaN and no infinity."""
    try:
        loaded: dict[str, Any] = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"the state of policy '{state['policy']}' cannot be saved as JSON: {error} (save "
            f"returned {state['own']!r})"
        ) from None
    return loaded


def knowledge(policy: Policy) -> dict[str, Any]:
    """The state without the generator and the conclusions of the algorithm."""
    state = policy.state_dict()
    del state["generator"], state["own"]
    return state


@contextmanager
def raises(error: type[Exception], pattern: str = "") -> Iterator[None]:
    """The code must raise this error, with a message that contains the pattern."""
    message = None
    try:
        yield
    except error as raised:
        message = str(raised)
    assert message is not None, f"expected {error.__name__} {pattern!r}, but nothing was raised"
    assert re.search(pattern, message), f"expected {pattern!r} in the message {message!r}"
