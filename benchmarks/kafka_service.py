"""The whole service on a real broker, compared with a client that only reads the same topic.

    python benchmarks/kafka_service.py [--quick]

(A file named kafka.py would hide the package of the client.)
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from kafka import TopicPartition

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.measure import Spread, in_fresh_process, in_turns, percentile, ratios
from benchmarks.meter import Meter, Run, serve_to_end
from benchmarks.records import duel_values, interleaving_values
from benchmarks.report import Goal, Result, alone
from streamduel.service import GC_THRESHOLDS
from streamduel_kafka.client import ConsumerOptions
from streamduel_kafka.connecting import connect
from streamduel_kafka.settings import SourceSettings
from tests.broker.local_kafka import LocalKafka

PARTITIONS = 4
ARMS = 6
CLIENTS = ("kafka-python", "confluent")
CONNECT_SECONDS = 10.0

LEAST_SHARE = {
    ("kafka-python", "duels"): 0.8,
    ("kafka-python", "impressions"): 0.65,
    ("confluent", "duels"): 0.35,
    ("confluent", "impressions"): 0.2,
}
"""The service's records per second of processor time, as a share of reading alone."""

VALUES = {"duels": duel_values, "impressions": interleaving_values}

METHOD = """\
{count:,} {kind} in 4 partitions of one topic, an experiment each, K = 6,
`decide_every: 100`, all other settings by default, no monitoring. "Reading alone" is
the connector's own consumer of that client, which polls to the end and discards the records.
The service is `streamduel.service.serve(…, until_end=True)` with its own consumer
group and topics. Each run is a new process, all alternate, and the ratio is within each turn.
The clock starts when the first poll with records returns (they do not count) and stops when the
last batch is delivered, or for the service when the last commit is visible. The broker shares the
cores with the client; processor time per record, of the client process only, all threads, is
therefore the more reliable figure, and the goals are for it."""

WHERE = """\
The runs of the service with kafka-python above: the shares of its time in the source's poll, the
fold and the commit; median (min–max)."""


def read_to_end(servers: str, topic: str, client: str) -> Run:
    """Read a topic with the connector's settings, and discard the records."""
    gc.set_threshold(*GC_THRESHOLDS)
    meter = Meter()
    settings = SourceSettings.model_validate(
        {"bootstrap_servers": servers, "topic": topic, "group": "alone", "client": client}
    )
    options = ConsumerOptions(max_records=settings.max_poll_records, skips_deleted=False)
    consumer = connect(options, settings.client_settings, CONNECT_SECONDS)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    left = sum(consumer.stable_ends(partitions, CONNECT_SECONDS).values())
    consumer.assign(dict.fromkeys(partitions, 0))
    while left:
        records = sum(map(len, consumer.poll(0.2).values()))
        left -= records
        meter.delivered(records, 0.0)
    meter.stop()
    consumer.close()
    return meter.run


def measure(quick: bool) -> list[Result]:
    """Measure reading and the service in turn, with both clients."""
    count = 100_000 if quick else 800_000
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as directory, LocalKafka() as broker:
        for kind, made in VALUES.items():
            create_topic(broker.bootstrap_servers, kind, PARTITIONS)
            fill(broker.bootstrap_servers, kind, PARTITIONS, count, ARMS, made)
            runs = _runs(Path(directory), broker.bootstrap_servers, kind)
            found = in_turns(runs, 2 if quick else 7)
            results.append(_throughput(count, kind, found))
            if kind == "duels":
                results.append(_where(found["kafka-python", "service"]))
    return results


def _runs(directory: Path, servers: str, topic: str) -> dict[tuple[str, str], Callable[[], Run]]:
    def read(client: str) -> Run:
        return in_fresh_process(read_to_end, servers, topic, client)

    def serve(client: str) -> Run:
        names = experiments(PARTITIONS)
        path = write_configuration(directory, servers, topic, names, client=client)
        return in_fresh_process(serve_to_end, path)

    return {
        (client, name): partial(run, client)
        for client in CLIENTS
        for name, run in (("reading", read), ("service", serve))
    }


def _throughput(count: int, kind: str, found: Mapping[tuple[str, str], Sequence[Run]]) -> Result:
    rows, goals = [], []
    for client in CLIENTS:
        reading, serving = found[client, "reading"], found[client, "service"]
        for name, runs in (("reading alone", reading), ("the whole service", serving)):
            speed = Spread.of([run.per_second for run in runs])
            cpu = Spread.of([run.cpu_microseconds for run in runs])
            rows.append([f"{client}: {name}", speed.text(0), cpu.text()])
        share = ratios([run.per_second for run in serving], [run.per_second for run in reading])
        cheap = ratios(
            [run.cpu_microseconds for run in reading], [run.cpu_microseconds for run in serving]
        )
        rows.append([f"{client}: service ÷ reading", share.text(), cheap.text()])
        what = f"{kind} with {client}, service ÷ reading, records per processor time"
        goals.append(Goal(what, cheap.median, at_least=LEAST_SHARE[client, kind]))
    columns = ["", "records/s", "processor time per record, µs (ratio: inverse)"]
    method = METHOD.format(count=count, kind=kind)
    return Result(f"The service on Apache Kafka: {kind}", method, columns, rows, goals)


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
