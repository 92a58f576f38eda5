"""Policies to check, and made-up users who tell them who won."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings

from streamduel import policies
from streamduel.policies import Policy

ARMS = 5

FORGETFUL: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}, window {window}": (name, {"window": window})
    for name in ("rucb", "double_thompson")
    for window in (40, 1_500)
}
"""With the small window, whatever is told makes the policy forget; the large one holds enough to
find a winner."""

# Fixed examples: a check that fails sometimes teaches people to run it again.
examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)


class Duel(NamedTuple):
    """One entry as `observe` takes it."""

    first: int
    second: int
    first_wins: float
    times: int


def kind(name: str) -> type[Policy]:
    """The class of a policy, forgetful or not."""
    return policies.get(FORGETFUL[name][0] if name in FORGETFUL else name)


def fresh(name: str, n_arms: int = ARMS, seed: int = 3) -> Policy:
    """A policy with its defaults, and a horizon if it cannot do without; or a forgetful one."""
    _, parameters = FORGETFUL.get(name, (name, {}))
    required = [one.name for one in kind(name).declared.values() if one.required]
    return kind(name)(n_arms, seed=seed, **dict.fromkeys(required, 10_000), **parameters)


def duels(least: int = 0, most: int = 60) -> st.SearchStrategy[list[Duel]]:
    """Duels of any pairs in any order, ties, self-duels and aggregated ones among them."""
    arms = st.integers(0, ARMS - 1)
    return st.lists(
        st.builds(Duel, arms, arms, st.sampled_from([0.0, 0.5, 1.0]), st.integers(1, 4)),
        min_size=least,
        max_size=most,
    )


def tell(policy: Policy, told: Sequence[Duel]) -> None:
    """Let the policy observe all of them in one call."""
    if told:
        policy.observe(*(np.array(column) for column in zip(*told, strict=True)))


def play(
    policy: Policy, steps: int, seed: int = 11, *, batch: int = 1, edge: float = 0.2
) -> list[list[int]]:
    """Let the policy propose and users answer, the lower arm winning more often by `edge`.

    One answer in ten is a tie. Returns the proposed pairs.
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
    """The state as a snapshot gives it back; NaN and infinity are no JSON."""
    loaded: dict[str, Any] = json.loads(json.dumps(state, allow_nan=False))
    return loaded


def knowledge(policy: Policy) -> dict[str, Any]:
    """All of the state but the generator and what the algorithm concludes when it is asked."""
    state = policy.state_dict()
    del state["generator"], state["own"]
    return state
