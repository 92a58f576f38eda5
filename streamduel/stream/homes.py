"""Where each experiment lives, and what is said of a record that stands elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from streamduel.errors import nearest
from streamduel.records import InputEvent, Rejected

MOST_COMPARED: Final = 50
"""Experiments that a mistaken name is compared with, some 10 µs each. If there are more, no name is
proposed: a service that logs under a wrong one must not take the others' time."""


class Log(NamedTuple):
    """The log that a task folds one partition of.

    Attributes:
        topic: its name.
        partitions: how many it has.
        home: the partition of an experiment, by the experiment's name.
    """

    topic: str
    partitions: int
    home: Callable[[str], int]


class Homes:
    """The configured experiments and their partitions.

    Args:
        names: of the experiments.
        log: how its partitions are assigned.
        partition: the one that is folded here.
    """

    def __init__(self, names: Iterable[str], log: Log, partition: int) -> None:
        self._names = sorted(names)
        self._homes = {name: log.home(name) for name in self._names}
        self._partition = partition

    def here(self, name: str) -> bool:
        """Whether an experiment lives in the partition that is folded here."""
        return self._homes[name] == self._partition

    def stranger(self, event: InputEvent) -> Rejected:
        """The verdict on a record of an experiment that is not folded here."""
        name, home = event.experiment, self._homes.get(event.experiment)
        if home is None:
            known = ", ".join(f"'{known}'" for known in self._names[:10])
            more = ", …" if len(self._names) > 10 else ""
            hint = nearest(name, self._names) if len(self._names) <= MOST_COMPARED else ""
            return Rejected(
                "unknown_experiment",
                f"unknown experiment '{name[:80]}'"
                f"{f'{hint} Configured' if hint else '; configured'} are {known}{more}.",
            )
        return Rejected(
            "wrong_partition",
            f"experiment '{name}' belongs into partition {home} (found in {self._partition}); "
            f"the record's key must be the experiment's name, hashed as Kafka's default "
            f"partitioner does.",
        )
