"""What every peer does: decode duels, drop repeated ids, count wins, publish a result per 100.

This module runs in the environments of the peers and needs msgspec alone.
"""

from __future__ import annotations

import sys
from typing import Literal, Self

import msgspec

EVERY = 100
"""Distinct duels of an experiment between two of its results."""

PARTITIONS = 4
"""Of the topic; each has one experiment, whose name is the key of its records."""

COMMIT_MS = 500
"""The interval of every peer that commits: the default of streamduel."""


class Job(msgspec.Struct, frozen=True):
    """One run of a program.

    Attributes:
        servers: the broker.
        topic: to read, from its beginning.
        results: the topic to write.
        group: the consumer group, and the prefix of every other name.
        state: an empty directory, kept over a restart.
        experiments: the names.
        variant: of the program, if it has several.
    """

    servers: str
    topic: str
    results: str
    group: str
    state: str
    experiments: list[str]
    variant: str = ""

    @classmethod
    def given(cls) -> Self:
        """The job of the command line."""
        return msgspec.json.decode(sys.argv[1], type=cls)

    def text(self) -> str:
        """The argument of the command line."""
        return msgspec.json.encode(self).decode()


class Duel(msgspec.Struct):
    """The fields of a duel that the job needs."""

    id: str
    experiment: str
    a: str
    b: str
    winner: Literal["a", "b"]

    @property
    def pair(self) -> str:
        """`winner>loser`."""
        return f"{self.a}>{self.b}" if self.winner == "a" else f"{self.b}>{self.a}"


class Result(msgspec.Struct):
    """The counts of an experiment; `wins` is None where a peer publishes something else."""

    experiment: str
    records: int
    wins: dict[str, int] | None = None


decode = msgspec.json.Decoder(Duel).decode
encode = msgspec.json.Encoder().encode


class Tally:
    """The state of one experiment, for peers that keep it as an object."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._records = 0
        self._wins: dict[str, int] = {}

    def count(self, duel: Duel) -> bytes | None:
        """Count a duel; returns a result after every `EVERY`."""
        if duel.id in self._seen:
            return None
        self._seen.add(duel.id)
        pair = duel.pair
        self._wins[pair] = self._wins.get(pair, 0) + 1
        self._records += 1
        if self._records % EVERY:
            return None
        return encode(Result(duel.experiment, self._records, self._wins))
