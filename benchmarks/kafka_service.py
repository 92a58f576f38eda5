"""The whole service on a real broker, compared with a client that only reads the same topic.

    python benchmarks/kafka_service.py [--quick]

(A file named kafka.py would hide the package of the client.)
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.measure import Spread, in_fresh_process, in_turns, percentile, ratios
from benchmarks.meter import Meter, Run, serve_to_end
from benchmarks.report import Goal, Result, alone
from streamduel.service import GC_THRESHOLDS
from streamduel_kafka.clients import CONSUMER
from streamduel_kafka.settings import SourceSettings
from tests.broker.local_kafka import LocalKafka

PARTITIONS = 4
ARMS = 6
LEAST_SHARE = 0.6

METHOD = """\
{count:,} duels of about 250 bytes in 4 partitions of one topic, an experiment each, K = 6,
`decide_every: 100`, all other settings by default, no monitoring. "Reading alone" is
kafka-python's `KafkaConsumer` with the connector's settings, which polls to the end and discards
the records. The service is `streamduel.service.serve(…, until_end=True)` with its own consumer
group and topics. Each run is a new process, both alternate, and the ratio is within each turn.
The clock starts when the first poll with records returns (they do not count) and stops when the
last batch is delivered, or for the service when the last commit is visible. The broker shares the
cores with the client; processor time per record, of the client process only, is therefore the
more reliable figure."""

WHERE = """\
The runs of the service above: the shares of its time in the source's poll, the fold and the commit;
median (min–max)."""


def read_to_end(servers: str, topic: str) -> Run:
    """Read a topic with the connector's settings, and discard the records."""
    gc.set_threshold(*GC_THRESHOLDS)
    meter = Meter()
    default = SourceSettings.model_fields["max_poll_records"].default
    consumer = KafkaConsumer(bootstrap_servers=servers, max_poll_records=default, **CONSUMER)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    left = sum(consumer.end_offsets(partitions).values())
    while left:
        records = sum(map(len, consumer.poll(timeout_ms=200).values()))
        left -= records
        meter.delivered(records, 0.0)
    meter.stop()
    consumer.close(autocommit=False)
    return meter.run


def measure(quick: bool) -> list[Result]:
    """Measure reading and the service in turn."""
    count = 100_000 if quick else 800_000
    with tempfile.TemporaryDirectory() as directory, LocalKafka() as broker:
        servers = broker.bootstrap_servers
        create_topic(servers, "clicks", PARTITIONS)
        fill(servers, "clicks", PARTITIONS, count, ARMS)
        names = experiments(PARTITIONS)

        def read() -> Run:
            return in_fresh_process(read_to_end, servers, "clicks")

        def serve() -> Run:
            path = write_configuration(Path(directory), servers, "clicks", names)
            return in_fresh_process(serve_to_end, path)

        runs = in_turns({"kafka: reading": read, "kafka: service": serve}, 2 if quick else 7)
    reading, serving = runs.values()
    return [_throughput(count, reading, serving), _where(serving)]


def _throughput(count: int, reading: Sequence[Run], serving: Sequence[Run]) -> Result:
    rows = []
    for name, runs in (("reading alone", reading), ("the whole service", serving)):
        speed = Spread.of([run.per_second for run in runs])
        cpu = Spread.of([run.cpu_microseconds for run in runs])
        rows.append([name, speed.text(0), cpu.text()])
    share = ratios([run.per_second for run in serving], [run.per_second for run in reading])
    cheap = ratios(
        [run.cpu_microseconds for run in reading], [run.cpu_microseconds for run in serving]
    )
    rows.append(["service ÷ reading (of processor time: inverse)", share.text(), cheap.text()])
    goal = Goal("service ÷ reading, records/s", share.median, at_least=LEAST_SHARE)
    columns = ["", "records/s", "processor time per record, µs"]
    method = METHOD.format(count=count)
    return Result("The service on Apache Kafka", method, columns, rows, [goal])


def _where(serving: Sequence[Run]) -> Result:
    commits = [sum(run.commits) for run in serving]
    parts = {
        "poll": [run.poll for run in serving],
        "fold": [run.fold for run in serving],
        "commit": commits,
    }
    rows = [
        [
            name,
            Spread.of([100 * s / r.seconds for s, r in zip(spent, serving, strict=True)]).text(0),
        ]
        for name, spent in parts.items()
    ]
    durations = [1000 * seconds for run in serving for seconds in run.commits]
    half, most = percentile(durations, 50), percentile(durations, 99)
    rows.append([f"one of {len(durations)} commits: p50 {half:.0f} ms, p99 {most:.0f} ms", ""])
    return Result("Where the service's time goes", WHERE, ["", "% of the time"], rows)


if __name__ == "__main__":
    alone(measure, __doc__)
