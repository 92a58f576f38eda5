"""Ranker services and their users, correct and faulty ones, as generators of records."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

Record = dict[str, Any]

FAIR: Final = (list("abba"), list("baab"))
"""Teams of four ranks, as team draft makes them with even coins."""


def now_ms() -> int:
    """The present time in milliseconds."""
    return int(1000 * time.time())


class Users:
    """The users of one experiment.

    Args:
        experiment: its name.
        seed: of what they draw.
    """

    def __init__(self, experiment: str, seed: int) -> None:
        self.experiment = experiment
        self.random = random.Random(seed)
        self._numbers = itertools.count()

    def record(self, kind: str, **fields: Any) -> Record:
        """A record with an id of its own, and the present time."""
        number = f"{kind}-{next(self._numbers)}"
        return {
            "type": kind, "id": number, "experiment": self.experiment, "ts": now_ms(), **fields,
        }  # fmt: skip

    def duel(self, a: str, b: str, a_wins: float) -> Record:
        """Whom a user prefers."""
        return self.record("duel", a=a, b=b, winner="a" if self.random.random() < a_wins else "b")

    def interleaving(
        self, a: str, b: str, a_wins: float = 0.5, teams: Sequence[str] | None = None
    ) -> Record:
        """A list of four and a click on the side that the user prefers; fair, if not said."""
        shown = teams or self.random.choice(FAIR)
        side = "a" if self.random.random() < a_wins else "b"
        clicks = [shown.index(side)]
        return self.record("interleaving", a=a, b=b, teams=shown, clicks=clicks)

    def impression(self, a: str, b: str) -> Record:
        """A list whose clicks come later."""
        return self.record("impression", a=a, b=b, teams=self.random.choice(FAIR))

    def click(self, impression: str) -> Record:
        """A click on it."""
        return self.record("click", impression=impression, rank=self.random.randrange(4))


def half_and_half(users: Users, a: str, b: str, number: int) -> Iterator[Record]:
    """Duels that either wins equally often: nothing is ever decided by them."""
    for winner in itertools.islice(itertools.cycle("ab"), number):
        yield users.record("duel", a=a, b=b, winner=winner)
