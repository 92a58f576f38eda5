"""The topic of a run: duels of one experiment per partition, every hundredth of them twice."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from kafka import KafkaProducer

from benchmarks.broker import PRODUCER, create_topic, experiments
from benchmarks.peers.job import PARTITIONS
from benchmarks.peers.ledger import Expected
from benchmarks.records import duel_values

ARMS = 6
REPEAT_EVERY = 100
REPEAT_AFTER = 50
"""Duels between a duel and its repetition."""


@dataclass(frozen=True)
class Clicks:
    """The records of a run.

    Attributes:
        values: of each experiment, in the order of their partitions.
        expected: the right counts.
        ends: the offset behind the last record, of each partition.
    """

    values: dict[str, list[bytes]]
    expected: Expected
    ends: list[int]

    @property
    def count(self) -> int:
        """All records, repetitions included."""
        return sum(map(len, self.values.values()))


def clicks(warm: int, count: int) -> tuple[Clicks, Clicks]:
    """`warm` distinct duels of each experiment to warm up with, and all `count` of the run.

    The expected counts of the second include those of the first.
    """
    expected, before = Expected(), Expected()
    first: dict[str, list[bytes]] = {}
    rest: dict[str, list[bytes]] = {}
    for partition, name in enumerate(experiments(PARTITIONS)):
        made = duel_values(warm + count, ARMS, name, seed=partition)
        first[name] = list(itertools.islice(made, warm))
        rest[name] = list(with_repetitions(made))
        for value in first[name]:
            before.add(value)
        for value in itertools.chain(first[name], rest[name]):
            expected.add(value)
    begun = [len(values) for values in first.values()]
    marked = 1  # the commit of the first transaction has an offset, too
    ended = [b + marked + len(values) for b, values in zip(begun, rest.values(), strict=True)]
    return Clicks(first, before, begun), Clicks(rest, expected, ended)


def with_repetitions(values: Iterator[bytes]) -> Iterator[bytes]:
    """The values, and one of them again after every `REPEAT_EVERY`."""
    lately: deque[bytes] = deque(maxlen=REPEAT_AFTER)
    for number, value in enumerate(values, 1):
        yield value
        lately.append(value)
        if number % REPEAT_EVERY == 0:
            yield lately[0]


TRANSACTION_MS = 900_000
"""The most that a broker allows: the transaction stays open while a peer starts."""


class Topic:
    """A topic whose main part becomes readable at once, when a transaction is committed.

    Until then a peer can start and warm up: start and compilation are not measured, and every peer
    has the same first moment. A peer that reads what is not committed gets the main part as fast as
    it can be written, from that moment on.
    """

    def __init__(
        self, servers: str, name: str, warm: Clicks, main: Clicks, *, uncommitted: bool
    ) -> None:
        create_topic(servers, name, PARTITIONS)
        self._name = name
        self._producer = KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=f"fill-{name}",
            transaction_timeout_ms=TRANSACTION_MS,
            **PRODUCER,
        )
        self._late = main if uncommitted else None
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self._write(warm)
        self._producer.commit_transaction()
        self._producer.begin_transaction()
        if not uncommitted:
            self._write(main)
            self._producer.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def open(self) -> None:
        """Make the main part readable."""
        if self._late is not None:
            self._write(self._late)
        self._producer.commit_transaction()

    def _write(self, clicks: Clicks) -> None:
        names = [name.encode() for name in clicks.values]
        for row in itertools.zip_longest(*clicks.values.values()):
            for partition, value in enumerate(row):
                if value is not None:
                    self._producer.send(self._name, value, names[partition], partition=partition)
