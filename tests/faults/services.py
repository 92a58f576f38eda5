"""A live click log, the service as users start it, and a reader of what it publishes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, TopicPartition, errors

from tests.command_line import FORKS
from tests.faults.kafka_runs import EXPERIMENTS, FIRST_STAMP, Run
from tests.faults.processes import ROOT, TIMEOUT
from tests.logs import endless_values

RUN = [sys.executable, "-m", "streamduel", "-v", "run"]

SEND_SECONDS = 180
"""How long a record of the click log waits for brokers: longer than any fault."""

STAMP_STEP = 10
"""Milliseconds of stream time between two records."""

PACE_SECONDS = 0.05
"""How often a steady click log gets its next records."""


def send_values(
    servers: str, topic: str, rate: int, burst: float, limit: int, stop: Any, sent: Any
) -> None:
    """Fill a click log until told to stop; runs in a process of its own.

    Args:
        servers: the brokers.
        topic: the click log's topic.
        rate: records a second, on average.
        burst: seconds between two bursts, each as fast as possible.
        limit: the most records.
        stop: an event.
        sent: a shared counter.
    """
    milliseconds = 1000 * SEND_SECONDS
    producer = KafkaProducer(
        bootstrap_servers=servers, linger_ms=20, batch_size=2**18, acks="all",
        max_block_ms=milliseconds, delivery_timeout_ms=milliseconds, request_timeout_ms=10_000,
    )  # fmt: skip
    size = max(1, int(rate * burst))
    source = endless_values(1, EXPERIMENTS)
    number, due = 0, time.monotonic()
    while number < limit and not stop.is_set():
        for _ in range(min(size, limit - number)):
            experiment, value = next(source)
            stamp = FIRST_STAMP + number * STAMP_STEP
            producer.send(topic, value, key=experiment.encode(), timestamp_ms=stamp)
            number += 1
        sent.value = number
        due = max(due + burst, time.monotonic() - burst)
        stop.wait(max(0.0, due - time.monotonic()))
    producer.flush(timeout=SEND_SECONDS)
    producer.close(timeout=1)


class Feed:
    """A process that appends to a click log; see `send_values`."""

    def __init__(
        self, servers: str, topic: str, rate: int, burst: float = PACE_SECONDS, limit: int = 2**62
    ) -> None:
        self._stop, self._sent = FORKS.Event(), FORKS.Value("q", 0)
        arguments = (servers, topic, rate, burst, limit, self._stop, self._sent)
        self._process = FORKS.Process(target=send_values, args=arguments, daemon=True)
        self._process.start()

    @property
    def sent(self) -> int:
        """Number of records so far."""
        return int(self._sent.value)

    @property
    def finished(self) -> bool:
        """Whether all records are written."""
        return not self._process.is_alive()

    def stop(self) -> None:
        """Write what is begun, and end."""
        self._stop.set()
        self._process.join(SEND_SECONDS)
        assert self._process.exitcode == 0, f"the producer ended with {self._process.exitcode}"

    def close(self) -> None:
        """End at once."""
        self._process.kill()
        self._process.join()


class Service:
    """`streamduel run` in a process of its own, as users start it.

    Args:
        config: the configuration.
        log: the file for its standard error.
    """

    def __init__(self, config: Path, log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen([*RUN, str(config)], cwd=ROOT, stdout=file, stderr=file)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def restored(self) -> bool:
        """Whether it has folded a partition."""
        return "partition restored" in self.log.read_text(errors="replace")

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the status."""
        self.process.terminate()
        return self.process.wait(TIMEOUT)

    def pause(self) -> None:
        """SIGSTOP: it neither reads, nor writes, nor notices time."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]


class Seen(NamedTuple):
    """An assignment as a reader saw it.

    Attributes:
        at: when, by `time.monotonic`.
        written: when the service wrote it, by `time.time`.
        partition: of the click log.
    """

    at: float
    written: float
    partition: int


class Reader:
    """Reads assignments with read_committed, as ranker services do, and checks their epochs."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self.seen: list[Seen] = []
        self.epochs: dict[str, int] = defaultdict(lambda: -1)
        self.problems: list[str] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._servers, isolation_level="read_committed",
            fetch_max_wait_ms=50, reconnect_backoff_max_ms=1000, request_timeout_ms=10_000,
        )  # fmt: skip
        with closing(consumer):
            at = [
                TopicPartition(self._topic, n) for n in consumer.partitions_for_topic(self._topic)
            ]
            consumer.assign(at)
            consumer.seek_to_beginning(*at)
            while not self._stopped.is_set():
                try:
                    fetched = consumer.poll(timeout_ms=100)
                except errors.KafkaError:
                    self._stopped.wait(0.1)
                    continue
                for batch in fetched.values():
                    self._note(batch)

    def _note(self, batch: list[Any]) -> None:
        now = time.monotonic()
        for record in batch:
            assignment = json.loads(record.value)
            name, epoch = assignment["experiment"], assignment["epoch"]
            if name in self.epochs and epoch != self.epochs[name] + 1:
                self.problems.append(f"{name}: epoch {epoch} after {self.epochs[name]}")
            self.epochs[name] = epoch
            self.seen.append(Seen(now, record.timestamp / 1000, assignment["partition"]))

    def gap(self, since: float, written: float) -> float | None:
        """Seconds until each partition has a visible assignment written after a moment.

        Args:
            since: the moment, by `time.monotonic`.
            written: the same moment, by `time.time`.
        """
        first: dict[int, float] = {}
        for each in list(self.seen):
            if each.written >= written:
                first.setdefault(each.partition, each.at - since)
        return max(first.values(), default=None)

    def silence(self, since: float, until: float) -> float:
        """The longest time between two moments without a newly visible one of some partition."""
        seen = list(self.seen)
        return max(
            b - a
            for partition in {each.partition for each in seen}
            for a, b in pairwise(
                [
                    since,
                    *(s.at for s in seen if s.partition == partition and since < s.at < until),
                    until,
                ]
            )
        )

    def close(self) -> None:
        """Stop reading."""
        self._stopped.set()
        self._thread.join()


def next_offsets(run: Run) -> tuple[list[int], list[int]]:
    """The group's committed offsets and the ends of the click log, by partition."""
    with closing(KafkaConsumer(bootstrap_servers=run.servers, group_id=run.group)) as consumer:
        at = [TopicPartition(run.log, n) for n in sorted(consumer.partitions_for_topic(run.log))]
        ends = consumer.end_offsets(at)
        return [consumer.committed(each) or 0 for each in at], [ends[each] for each in at]
