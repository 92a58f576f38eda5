"""Ranker services with simulated users, in a closed loop with a running streamduel."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from typing import Any, Final, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.integration.evidence import Run

DELAY: Final = 2_000
"""A duel is written only after at least so many further ones have been served."""

TIES: Final = 0.05
"""The share of duels that nobody wins."""

RESENT: Final = 0.01
"""So often something is written once more, by a producer that was not sure of it."""

RECENT: Final = 5_000
"""One of the last so many: the duplicate may come long after a change of arms."""

TURN: Final = 500
"""Impressions that a service serves before it looks for an assignment: a quarter of the delay."""

LAG: Final = 1_000
"""Records that may wait to be folded, so that the delay is what it is said to be, on any machine.
Real users leave streamduel the time to keep up; simulated ones have to be held back."""

PATIENCE: Final = 60.0
"""Seconds for the service to start and to fold: far more than either takes on a loaded machine."""

Preferences = Mapping[str, Mapping[str, float]]


def preferences_by(strengths: Mapping[str, float]) -> Preferences:
    """[a][b]: how likely a wins if somebody does, by how much stronger it is."""
    return {a: {b: 0.5 + strengths[a] - strengths[b] for b in strengths} for a in strengths}


class SimulatedService:
    """Serves the pairs of an experiment's newest assignment, and logs what its users prefer.

    Args:
        experiment: its name.
        preferences: of its users.
        seed: of everything that is drawn here.

    Attributes:
        assignments: those that it has followed.
        in_flight: records of duels that were served, the oldest first.
        served: how many impressions.
        written: how many records it has put out, those put out again included.
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
        """From now on this one is in force."""
        self.assignments.append(assignment)

    def offers(self, arm: str) -> bool:
        """Whether the assignment in force lets users see it."""
        return any(arm in (pair["a"], pair["b"]) for pair in self.assignments[-1]["pairs"])

    def in_flight_of(self, arm: str) -> int:
        """How many duels of it are served and not known yet."""
        return sum(f'"{arm}"'.encode() in record for record in self.in_flight)

    def serve(self, impressions: int) -> list[bytes]:
        """The records that are due after so many more impressions."""
        pairs = self.assignments[-1]["pairs"]
        shares = [pair["share"] for pair in pairs]
        for pair in self._random.choices(pairs, shares, k=impressions):
            self.in_flight.append(self._duel(pair["a"], pair["b"]))
        return self._out(len(self.in_flight) - DELAY)

    def close(self) -> list[bytes]:
        """The records that are still in flight."""
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
    """Services that follow the assignments and write the click log, as fast as streamduel folds it.

    Args:
        run: where log and assignments are.
        services: one for each experiment.
    """

    def __init__(self, run: Run, *services: SimulatedService) -> None:
        self._log = run.log
        self._services = {service.experiment: service for service in services}
        self._ends: dict[int, int] = {}  # by partition: how far it is written
        self._stack = ExitStack()
        reader = KafkaConsumer(
            run.assignments, bootstrap_servers=run.servers, isolation_level="read_committed",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        self._reader = self._stack.enter_context(closing(reader))
        # It joins nobody; it only asks how far the group has come.
        onlooker = KafkaConsumer(bootstrap_servers=run.servers, group_id=run.log)
        self._onlooker = self._stack.enter_context(closing(onlooker))
        producer = KafkaProducer(bootstrap_servers=run.servers, linger_ms=5, batch_size=2**17)
        self._producer = self._stack.enter_context(closing(producer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def serve(self, impressions: int) -> None:
        """Let each service serve so many impressions."""
        self.follow_until(lambda: all(each.assignments for each in self._services.values()))
        for _ in range(impressions // TURN):
            for service in self._services.values():
                self._write(service.experiment, service.serve(TURN))
            self.follow_until(lambda: self._arrears() <= LAG)

    def end(self) -> None:
        """Write what is still in flight, and wait until all is folded."""
        for service in self._services.values():
            self._write(service.experiment, service.close())
        self.follow_until(lambda: self._arrears() <= 0)

    def follow_until(self, satisfied: Callable[[], bool]) -> None:
        """Serve nothing, and take in assignments until it is so."""
        deadline = time.monotonic() + PATIENCE
        while True:
            done = satisfied()
            for records in self._reader.poll(timeout_ms=10).values():
                for record in records:
                    self._services[record.key.decode()].follow(json.loads(record.value))
            if done:
                return
            assert time.monotonic() < deadline, f"it did not; {self._arrears()} records in arrears"

    def _write(self, experiment: str, records: list[bytes]) -> None:
        key = experiment.encode()
        sent = [self._producer.send(self._log, record, key=key) for record in records]
        self._producer.flush()
        if sent:
            last = sent[-1].get(PATIENCE)
            self._ends[last.partition] = last.offset + 1

    def _arrears(self) -> int:
        """How many records of the partition that is most in arrears are not folded yet."""
        return max(
            (
                end - (self._onlooker.committed(TopicPartition(self._log, partition)) or 0)
                for partition, end in self._ends.items()
            ),
            default=0,
        )
