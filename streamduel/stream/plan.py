"""What ranker services are to do until the next decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from streamduel.policies import Policy
from streamduel.preference.arrays import Integers
from streamduel.records import PairShare

Status = Literal["running", "paused", "finished"]


class PairPlan(NamedTuple):
    """One pair of a plan.

    Attributes:
        first: an arm's name.
        second: an arm's name, perhaps the same.
        weight: its share is in proportion to this.
        remaining: how many duels of it an open batch lacks; None outside a batch.
    """

    first: str
    second: str
    weight: int
    remaining: int | None = None


class Plan(NamedTuple):
    """Equal plans need not be published twice.

    Attributes:
        champion: the arm to serve if exploration ended now.
        pairs: the most frequent first.
        stage: the algorithm at work.
        status: whether duels change the plan at present.
        frozen: the pair is somebody's wish, and not the policy's.
    """

    champion: str
    pairs: tuple[PairPlan, ...]
    stage: str
    status: Status = "running"
    frozen: bool = False

    def shares(self) -> list[PairShare]:
        """As an assignment has them; they add up to 1."""
        total = sum(pair.weight for pair in self.pairs)
        return [
            PairShare(pair.first, pair.second, pair.weight / total, pair.remaining)
            for pair in self.pairs
        ]

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        pairs = [list(pair) for pair in self.pairs]
        return {**self._asdict(), "pairs": pairs}

    @classmethod
    def resume(cls, state: Mapping[str, Any]) -> Plan:
        """The plan whose `state` this was."""
        return cls(**{**state, "pairs": tuple(PairPlan(*pair) for pair in state["pairs"])})


def alone(policy: Policy, arms: Sequence[str], status: Status) -> Plan:
    """The champion alone."""
    champion = arms[policy.champion()]
    return Plan(champion, (PairPlan(champion, champion, 1),), policy.stage, status)


def frozen(policy: Policy, arms: Sequence[str], pair: tuple[str, str]) -> Plan:
    """One pair, whatever the policy wants."""
    return Plan(arms[policy.champion()], (PairPlan(*pair, 1),), policy.stage, frozen=True)


def slate(policy: Policy, arms: Sequence[str], size: int) -> Plan:
    """The policy's next `size` duels; a pair's share is how often it is among them."""
    proposed = policy.propose(size).tolist()
    champion = arms[policy.champion()]
    if size == 1:
        first, second = sorted(proposed[0])
        return Plan(champion, (PairPlan(arms[first], arms[second], 1),), policy.stage)
    duels = Counter((min(pair), max(pair)) for pair in proposed)
    ordered = sorted(duels.items(), key=lambda item: (-item[1], item[0]))
    pairs = tuple(PairPlan(arms[i], arms[j], times) for (i, j), times in ordered)
    return Plan(champion, pairs, policy.stage)


def batch(policy: Policy, arms: Sequence[str], remaining: Integers) -> Plan:
    """What an open batch lacks; pairs are served in proportion to it."""
    first, second = np.triu(remaining, k=1).nonzero()
    lacking = remaining[first, second].tolist()
    entries = sorted(
        zip(first.tolist(), second.tolist(), lacking, strict=True),
        key=lambda entry: (-entry[2], entry[0], entry[1]),
    )
    pairs = tuple(PairPlan(arms[i], arms[j], duels, duels) for i, j, duels in entries)
    return Plan(arms[policy.champion()], pairs, policy.stage)
