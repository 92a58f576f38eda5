"""The effect of the commit interval on throughput and latency.

python benchmarks/commit_interval.py [--quick]
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.measure import Spread, in_fresh_process, in_turns, percentile, ratios, tell
from benchmarks.meter import Run, serve_metered, serve_to_end
from benchmarks.records import duel_values
from benchmarks.report import Result, alone
from streamduel.records import Assignment
from tests.broker.local_kafka import LocalKafka

INTERVALS = (50, 100, 250, 500, 1000)
SLOWEST = INTERVALS[-1]
PARTITIONS = 4
ARMS = 6
RATE = 200
"""Records a second for the latency: a low load, so that only waiting is measured."""
START_SECONDS = 60.0
GRACE_SECONDS = 2.0
"""After the last record: twice the longest interval."""

METHOD = """\
Throughput: a backlog of {count:,} duels in 4 partitions, K = 6, `decide_every: 100`, a new
process and consumer group per run, the intervals in turn; relative to 1000 ms within each turn,
timed as for the service. Latency: {rate} duels a second into one partition for {seconds:.0f} s,
`decide_every: 1`, so that nearly every duel changes the plan; from the call that sends the record
to the return of the poll in which a `read_committed` consumer receives the assignment with the
record's offset, including assignments replaced within the same commit. The duration of a commit
is that of the runner at this rate."""

Seen = dict[int, float]


class Latency(NamedTuple):
    """Latencies at a low rate."""

    waits: list[float]
    commits: list[float]


def serve_until(path: Path, stop: Event, result: Connection) -> None:
    """Run the service until the event is set; returns its figures."""
    result.send(serve_metered(path, stop.is_set, until_end=False))


def measure(quick: bool) -> list[Result]:
    """Measure throughput, then latency, for every interval."""
    count, seconds = (100_000, 3.0) if quick else (400_000, 15.0)
    with tempfile.TemporaryDirectory() as name, LocalKafka() as broker:
        servers, directory = broker.bootstrap_servers, Path(name)
        create_topic(servers, "backlog", PARTITIONS)
        fill(servers, "backlog", PARTITIONS, count, ARMS)
        runs = in_turns(
            {
                f"commit interval {interval} ms": partial(_backlog, directory, servers, interval)
                for interval in INTERVALS
            },
            2 if quick else 3,
        )
        latencies = [_latency(directory, servers, interval, seconds) for interval in INTERVALS]
    backlogs = dict(zip(INTERVALS, runs.values(), strict=True))
    rows = [
        _row(interval, backlogs, latency)
        for interval, latency in zip(INTERVALS, latencies, strict=True)
    ]
    columns = [
        "interval, ms", "records/s", "relative to 1000 ms", "latency p50, ms", "p99, ms",
        "commit p50, ms", "p99, ms", "commits",
    ]  # fmt: skip
    method = METHOD.format(count=count, rate=RATE, seconds=seconds)
    return [Result("The commit interval", method, columns, rows)]


def _row(interval: int, backlogs: Mapping[int, Sequence[Run]], latency: Latency) -> list[str]:
    speeds = [run.per_second for run in backlogs[interval]]
    relative = ratios(speeds, [run.per_second for run in backlogs[SLOWEST]])
    cells = [str(interval), Spread.of(speeds).text(0), relative.text()]
    for values in latency:
        cells += [f"{1000 * percentile(values, percent):.0f}" for percent in (50, 99)]
    return [*cells, str(len(latency.commits))]


def _backlog(directory: Path, servers: str, interval: int) -> Run:
    path = write_configuration(
        directory, servers, "backlog", experiments(PARTITIONS), interval_ms=interval
    )
    return in_fresh_process(serve_to_end, path)


def _latency(directory: Path, servers: str, interval: int, seconds: float) -> Latency:
    """Feed a separate service at a low rate, and read what it publishes."""
    tell(f"commit interval {interval} ms: latency")
    topic = f"trickle-{interval}"
    create_topic(servers, topic, 1)
    path = write_configuration(
        directory, servers, topic, ["search"], interval_ms=interval, n_arms=ARMS, decide_every=1
    )
    assignments = msgspec.json.decode(path.read_bytes())["sink"]["assignments"]
    create_topic(servers, assignments, 1, {"cleanup.policy": "compact"})
    context = get_context("spawn")
    stop, (here, there) = context.Event(), context.Pipe()
    service = context.Process(target=serve_until, args=(path, stop, there))
    service.start()
    there.close()  # notices that a service has failed
    try:
        waits = _watch(servers, topic, assignments, int(RATE * seconds))
        stop.set()
        run: Run = here.recv()
    finally:
        stop.set()
        service.join(START_SECONDS)
        service.kill()
    return Latency(waits, run.commits)


def _watch(servers: str, topic: str, assignments: str, count: int) -> list[float]:
    """Produce `count` records, and measure the delay of the assignment that each causes."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed", fetch_max_wait_ms=20
    )
    at = TopicPartition(assignments, 0)
    consumer.assign([at])
    consumer.seek_to_beginning(at)
    seen: Seen = {}
    deadline = time.monotonic() + START_SECONDS
    while -1 not in seen:  # the first assignment precedes every record
        if time.monotonic() > deadline:
            raise TimeoutError("the service did not start")
        _look(consumer, seen)
    sent: list[tuple[float, Any]] = []
    producer = threading.Thread(target=_produce, args=(servers, topic, count, sent))
    producer.start()
    end = float("inf")
    while time.monotonic() < end:
        _look(consumer, seen)
        if not producer.is_alive() and end == float("inf"):
            end = time.monotonic() + GRACE_SECONDS
    consumer.close(autocommit=False)
    offsets = {future.get().offset: moment for moment, future in sent}
    return [moment - offsets[offset] for offset, moment in seen.items() if offset >= 0]


def _look(consumer: Any, seen: Seen) -> None:
    for batch in consumer.poll(timeout_ms=100).values():
        moment = time.monotonic()
        for record in batch:
            seen[msgspec.json.decode(record.value, type=Assignment).offset] = moment


def _produce(servers: str, topic: str, count: int, sent: list[tuple[float, Any]]) -> None:
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        producer.partitions_for(topic)  # has the topic's metadata before the first record
        due = time.monotonic()
        for value in duel_values(count, ARMS):
            time.sleep(max(0.0, due - time.monotonic()))
            sent.append((time.monotonic(), producer.send(topic, value, b"search")))
            due += 1 / RATE


if __name__ == "__main__":
    alone(measure, __doc__)
