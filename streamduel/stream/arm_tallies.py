"""How often each arm has fought: what a policy's counts no longer say when it forgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamduel.preference.arrays import Integers


class ArmTallies:
    """Counts the duels of each arm.

    A policy's counts fall when it forgets old duels, or when an arm leaves and takes the duels
    against it along. These do not: they begin anew only when all is forgotten, by `reset`.

    Args:
        n_arms: K.
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        alone: (K,), how often each arm was served alone.
        fought: (K,), how many duels against other arms each has had.
    """

    __slots__ = ("alone", "fought")

    def __init__(self, n_arms: int, state: Mapping[str, Any] | None = None) -> None:
        self.alone: list[int] = list(state["alone"]) if state else [0] * n_arms
        self.fought: list[int] = list(state["fought"]) if state else [0] * n_arms

    def count(self, first: int, second: int, times: int = 1) -> None:
        """Duels of one pair."""
        if first == second:
            self.alone[first] += times
        else:
            self.fought[first] += times
            self.fought[second] += times

    def count_many(self, firsts: Integers, seconds: Integers) -> None:
        """One duel of each of these pairs."""
        alike = firsts == seconds
        by_themselves = firsts[alike]
        both = np.concatenate((firsts, seconds))
        self.fought = _plus(self.fought, both, 1)
        if len(by_themselves):
            self.alone = _plus(self.alone, by_themselves, 1)
            self.fought = _plus(self.fought, by_themselves, -2)

    def join(self) -> None:
        """Another arm competes."""
        self.alone.append(0)
        self.fought.append(0)

    def leave(self, arm: int) -> None:
        """An arm competes no more; the others keep what they had."""
        del self.alone[arm]
        del self.fought[arm]

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"alone": list(self.alone), "fought": list(self.fought)}


def _plus(counts: list[int], arms: Integers, times: int) -> list[int]:
    more = np.bincount(arms, minlength=len(counts)).tolist()
    return [count + times * each for count, each in zip(counts, more, strict=True)]
