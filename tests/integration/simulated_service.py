"""Simulated ranker services in a closed loop with a running streamduel."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, Final, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.faults.kafka_runs import Run

DELAY: Final = 2_000
"""Number of impressions served between a duel and its record."""

TIES: Final = 0.05
"""Share of ties."""

RESENT: Final = 0.01
"""Probability of a duplicate after each record, as from a producer that retries."""

RECENT: Final = 5_000
"""A duplicate is one of so many last records, so it may come long after a change of arms."""

TURN: Final = 500
"""Impressions between two looks for an assignment: a quarter of the delay."""

LAG: Final = 1_000
"""The largest lag, so that the delay is the same on any machine. Simulated users are faster than
streamduel and have to wait for it."""

PATIENCE: Final = 180.0
"""Seconds to wait for the service: far more than starting and folding take on a loaded machine."""

Preferences = Mapping[str, Mapping[str, float]]


def preferences_by(strengths: Mapping[str, float]) -> Preferences:
    """[a][b] is the probability that a beats b without a tie, from the strengths of both."""
    return {a: {b: 0.5 + strengths[a] - strengths[b] for b in strengths} for a in strengths}


class SimulatedService:
    """Serves the pairs of an experiment's newest assignment, and records the users' preferences.

    Args:
        experiment: the experiment's name.
        preferences: the preferences of its users.
        seed: seed of the random numbers.

    Attributes:
        assignments: the assignments so far.
        in_flight: records of duels that were served and not written, the oldest first.
        served: number of impressions.
        written: number of records written, duplicates included.
    """

    def __init__(self, experiment: str, preferences: Preferences, seed: int) -> None:
        self.experiment = experiment
        self.preferences = preferences
        self.assignments: list[dict[str, Any]] = []
        self.in_flight: deque[bytes] = deque()
        self.served = self.written = 0
        self._random = random.Random(seed)
        self._recent: deque[bytes] = deque(maxlen=RECENT)

    def follow(self, assignment: dict[str, Any]) -> None:
        """Use this assignment from now on."""
        self.assignments.append(assignment)

    def offers(self, arm: str) -> bool:
        """Whether the newest assignment has the arm."""
        return any(arm in (pair["a"], pair["b"]) for pair in self.assignments[-1]["pairs"])

    def in_flight_of(self, arm: str) -> int:
        """Number of duels of an arm in flight."""
        return sum(f'"{arm}"'.encode() in record for record in self.in_flight)

    def serve(self, impressions: int) -> list[bytes]:
        """Serve impressions; returns the records that are due."""
        pairs = self.assignments[-1]["pairs"]
        shares = [pair["share"] for pair in pairs]
        for pair in self._random.choices(pairs, shares, k=impressions):
            self.in_flight.append(self._duel(pair["a"], pair["b"]))
        return self._out(len(self.in_flight) - DELAY)

    def close(self) -> list[bytes]:
        """The records still in flight."""
        return self._out(len(self.in_flight))

    def _out(self, duels: int) -> list[bytes]:
        records: list[bytes] = []
        for _ in range(duels):
            records.append(self.in_flight.popleft())
            self._recent.append(records[-1])
            if self._random.random() < RESENT:
                records.append(self._random.choice(self._recent))
        self.written += len(records)
        return records

    def _duel(self, a: str, b: str) -> bytes:
        self.served += 1
        return json.dumps(
            {
                "type": "duel", "id": f"impression-{self.served}", "experiment": self.experiment,
                "a": a, "b": b, "winner": self._winner(a, b),
            }
        ).encode()  # fmt: skip

    def _winner(self, a: str, b: str) -> str | None:
        if a == b:
            return None
        if self._random.random() < TIES:
            return "tie"
        return "a" if self._random.random() < self.preferences[a][b] else "b"


class ClosedLoop:
    """Services that follow the assignments and write the click log as fast as it is folded.

    Args:
        run: the run with the topics.
        services: one for each experiment.
    """

    def __init__(self, run: Run, *services: SimulatedService) -> None:
        self._log = run.log
        self._services = {service.experiment: service for service in services}
        self._ends: dict[int, int] = {}  # by partition: the next offset to write
        self._stack = ExitStack()
        reader = KafkaConsumer(
            run.assignments, bootstrap_servers=run.servers, isolation_level="read_committed",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        self._reader = self._stack.enter_context(closing(reader))
        # Joins no group; only asks for the group's committed offsets.
        offsets = KafkaConsumer(bootstrap_servers=run.servers, group_id=run.group)
        self._offsets = self._stack.enter_context(closing(offsets))
        producer = KafkaProducer(bootstrap_servers=run.servers, linger_ms=5, batch_size=2**17)
        self._producer = self._stack.enter_context(closing(producer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def serve(self, impressions: int) -> None:
        """Let each service serve this many impressions."""
        self.follow_until(lambda: all(each.assignments for each in self._services.values()))
        for _ in range(impressions // TURN):
            for service in self._services.values():
                self._write(service.experiment, service.serve(TURN))
            self.follow_until(lambda: self._lag() <= LAG)

    def end(self) -> None:
        """Write the records in flight, and wait until all are folded."""
        for service in self._services.values():
            self._write(service.experiment, service.close())
        self.follow_until(lambda: self._lag() <= 0)

    def follow_until(self, satisfied: Callable[[], bool]) -> None:
        """Serve nothing and follow assignments until the condition holds."""
        deadline = time.monotonic() + PATIENCE
        while True:
            done = satisfied()
            for records in self._reader.poll(timeout_ms=10).values():
                for record in records:
                    self._services[record.key.decode()].follow(json.loads(record.value))
            if done:
                return
            assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s; lag {self._lag()}"

    def _write(self, experiment: str, records: list[bytes]) -> None:
        key = experiment.encode()
        sent = [self._producer.send(self._log, record, key=key) for record in records]
        self._producer.flush()
        if sent:
            last = sent[-1].get(PATIENCE)
            self._ends[last.partition] = last.offset + 1

    def _lag(self) -> int:
        """The largest lag of a partition."""
        return max(
            (
                end - (self._offsets.committed(TopicPartition(self._log, partition)) or 0)
                for partition, end in self._ends.items()
            ),
            default=0,
        )
