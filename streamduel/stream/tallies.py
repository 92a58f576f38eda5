"""Tallies of an experiment: records by outcome, and duels by arm."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import structs

from streamduel.preference.arrays import Integers


class Outcomes(msgspec.Struct):
    """The number of an experiment's records by outcome.

    Attributes:
        accepted: applied; of two-part impressions, the impression and every joined click.
        duplicate: repeats an id of the dedupe window.
        dead_letter: refused.
        late: clicks on an impression whose join window is closed.
        unjoined: clicks whose impression did not arrive.
        capped: exceed the cap of their client; of two-part impressions, the impression.
    """

    accepted: int = 0
    duplicate: int = 0
    dead_letter: int = 0
    late: int = 0
    unjoined: int = 0
    capped: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(structs.astuple(self))

    def state(self, *, capped: bool) -> dict[str, int]:
        """What the hard state contains.

        Args:
            capped: whether the experiment has a cap. Without one, the state is that of releases
                which had no caps, and hashes equal.
        """
        state = structs.asdict(self)
        if not capped:
            del state["capped"]
        return state


class ArmTallies(msgspec.Struct):
    """The number of duels of each arm since the experiment began or was reset.

    A policy's own counts fall when it forgets old duels, or when an arm retires and takes the duels
    against it along. These do not.

    Attributes:
        alone: (K,), how often each arm was served alone.
        fought: (K,), duels against other arms.
    """

    alone: list[int]
    fought: list[int]

    @classmethod
    def of(cls, n_arms: int) -> ArmTallies:
        """No duels yet."""
        return cls([0] * n_arms, [0] * n_arms)

    def count(self, first: int, second: int, times: int = 1) -> None:
        """Count duels of one pair."""
        if first == second:
            self.alone[first] += times
        else:
            self.fought[first] += times
            self.fought[second] += times

    def count_many(self, firsts: Integers, seconds: Integers) -> None:
        """Count one duel of each of these pairs."""
        alone = firsts[firsts == seconds]
        self.fought = _add(self.fought, np.concatenate((firsts, seconds)), 1)
        if len(alone):
            self.alone = _add(self.alone, alone, 1)
            self.fought = _add(self.fought, alone, -2)

    def add_arm(self) -> None:
        """Append an arm."""
        self.alone.append(0)
        self.fought.append(0)

    def retire_arm(self, arm: int) -> None:
        """Remove an arm; the others keep their counts."""
        del self.alone[arm]
        del self.fought[arm]


def _add(counts: list[int], arms: Integers, times: int) -> list[int]:
    added = np.bincount(arms, minlength=len(counts)).tolist()
    return [count + times * each for count, each in zip(counts, added, strict=True)]
