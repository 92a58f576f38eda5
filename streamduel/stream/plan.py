"""Plans: what a policy wants served until the next decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from streamduel.policies import Policy
from streamduel.preference.arrays import Integers
from streamduel.records import PairShare, Status


class PairPlan(msgspec.Struct, frozen=True, array_like=True):
    """One pair of a plan.

    Attributes:
        first: name of an arm.
        second: name of an arm, possibly the same.
        weight: its share is in proportion to this.
        remaining: duels of the pair that an open batch lacks; None outside a batch.
    """

    first: str
    second: str
    weight: int
    remaining: int | None = None


class Plan(msgspec.Struct, frozen=True):
    """The pairs that a policy wants served; a plan equal to the last one is not published.

    Attributes:
        champion: the arm to serve if exploration ended now.
        pairs: the most frequent first.
        stage: the algorithm at work.
        status: whether duels change the plan.
        frozen: the pair was chosen by a control record or the configuration, not by the policy.
    """

    champion: str
    pairs: tuple[PairPlan, ...]
    stage: str
    status: Status = "running"
    frozen: bool = False

    def shares(self) -> list[PairShare]:
        """The pairs of an assignment; their shares add up to 1."""
        total = sum(pair.weight for pair in self.pairs)
        return [
            PairShare(pair.first, pair.second, pair.weight / total, pair.remaining)
            for pair in self.pairs
        ]


def alone(policy: Policy, arms: Sequence[str], status: Status) -> Plan:
    """The champion alone, paused or finished."""
    champion = arms[policy.champion()]
    return Plan(champion, (PairPlan(champion, champion, 1),), policy.stage, status)


def frozen(policy: Policy, arms: Sequence[str], pair: tuple[str, str]) -> Plan:
    """A frozen pair, whatever the policy wants."""
    return Plan(arms[policy.champion()], (PairPlan(*pair, 1),), policy.stage, frozen=True)


def slate(policy: Policy, arms: Sequence[str], size: int) -> Plan:
    """The policy's next `size` duels; the share of a pair is its frequency among them."""
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
    """The remaining duels of an open batch; pairs are served in proportion to them."""
    first, second = np.triu(remaining, k=1).nonzero()
    lacking = remaining[first, second].tolist()
    entries = sorted(
        zip(first.tolist(), second.tolist(), lacking, strict=True),
        key=lambda entry: (-entry[2], entry[0], entry[1]),
    )
    pairs = tuple(PairPlan(arms[i], arms[j], duels, duels) for i, j, duels in entries)
    return Plan(arms[policy.champion()], pairs, policy.stage)
