"""The cost of each stage of the Spark job, and of streamduel behind it: a table of docs/scale.md.

python -m benchmarks.scale [--quick] [--kafka HOST:PORT] [--out docs]

The stages in Python are measured in this process; with `--kafka`, the whole job on a real broker.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka import KafkaProducer

from benchmarks import attribution, fold
from benchmarks import records as made
from benchmarks.broker import PRODUCER, create_topic
from benchmarks.machine import facts
from benchmarks.measure import Spread, in_turns, tell
from benchmarks.policy_regret import put_in
from benchmarks.records import Record, configuration
from streamduel.config import Config
from streamduel_spark.bucket import Bucket
from streamduel_spark.crediting import Crediting
from streamduel_spark.decoding import Decoder, RawRecord
from streamduel_spark.parts import chunk_of
from streamduel_spark.plan import Plan
from streamduel_spark.sink import Sink, merge

JOIN_WINDOW_MS: Final = 60_000
FLUSH: Final = 50_000
"""Records that are packed together, as in the job."""

QUICK: Final = 200_000
THOROUGH: Final = 800_000
FEW: Final = 8
"""What a query costs whatever it reads is known from one with this part of the records."""

RATES: Final = (50_000, 100_000, 250_000, 500_000, 1_000_000)
USED: Final = 0.5
"""Share of a core that the table plans with: the rest is for peaks, and for catching up."""

METHOD: Final = """\
Measured on {cpu}: processor time per record, median (min–max) of {repetitions} runs of {count:,}
records. *Decode* and *count* are the two Python stages of the job, in one process. *The whole job*
({whole} runs) is the processor time of all its processes, the JVM included, in local mode on a real
Kafka. The fixed cost of a query is left out: the time of a query over an eighth of the records is
subtracted. So the figure contains Spark's reading, its shuffle and its state.
*streamduel alone* is its fold of the same records in memory, without reading and commits."""


class Log(NamedTuple):
    """A log of raw records.

    Attributes:
        name: in the table.
        records: in order.
        config: the experiment that they belong to.
    """

    name: str
    records: Sequence[Record]
    config: Config


def logs(count: int) -> list[Log]:
    """The logs: duels, finished impressions, and impressions with their clicks apart."""
    spark = {"topic": "raw", "checkpoint": "checkpoint", "partitions": 2}
    dedupe = {"window_records": 4 * count}
    config = configuration(6, 100, spark=spark, dedupe=dedupe)
    search = {**config.experiments["search"].model_dump(), "join_window_ms": JOIN_WINDOW_MS}
    config = Config.model_validate({**config.model_dump(), "experiments": {"search": search}})
    return [
        Log("`duel`", made.records(made.duel_values(count, 6)), config),
        Log("`interleaving`", made.records(made.interleaving_values(count, 6)), config),
        Log("`impression` and `click`", attribution.parts(2 * count // 3), config),
    ]


def decode(log: Log) -> float:
    """Seconds of decoding, crediting and packing."""
    plan = _plan(log.config)
    raw = list(_raw(log.records))
    began = time.process_time()
    for _ in _chunks(plan, raw):
        pass
    return time.process_time() - began


def count(log: Log) -> float:
    """Seconds of storing chunks, closing their slices, and merging what they counted."""
    plan = _plan(log.config)
    chunks = list(_chunks(plan, list(_raw(log.records))))
    stores: list[_Stored] = [_Stored() for _ in range(plan.spark.partitions)]
    crediting = Crediting(plan.experiments)
    began = time.process_time()
    for number, store in enumerate(stores):
        bucket = Bucket(plan, store, crediting)
        for place, chunk in chunks:
            if place.bucket == number:
                bucket.add(str(place.lane), place.start, chunk)
        merge(bucket.advance(2**50), plan.limits.max_duels_per_record)
    return time.process_time() - began


class _Stored(dict[str, bytes]):
    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        del self[key]


def _plan(config: Config) -> Plan:
    assert config.spark is not None
    return Plan.of(config, config.spark, "dead-letters")


def _raw(records: Sequence[Record]) -> Iterator[RawRecord]:
    # In the past on every machine: the job takes a time in the future for now.
    past = made.START - 1_600_000_000_000
    for record in records:
        yield RawRecord(0, record.offset, record.timestamp - past, record.key, record.value)


def _chunks(plan: Plan, raw: Sequence[RawRecord]) -> Iterator[tuple[Any, bytes]]:
    decoder = Decoder(plan, "raw")
    for start in range(0, len(raw), FLUSH):
        for _ in decoder.read(raw[start : start + FLUSH]):
            pass
        parts, _, _ = decoder.take()
        for place, chunk in parts.items():
            yield place, chunk_of(chunk)


# The whole job.


def whole_job(servers: str, log: Log) -> float:
    """Processor seconds of the whole job for these records, beyond those of starting a query."""
    few = log._replace(records=log.records[: len(log.records) // FEW])
    query_seconds(servers, few)  # Java compiles what it has run often
    less, more = (query_seconds(servers, it) for it in (few, log))
    return (more - less) * FEW / (FEW - 1)


def query_seconds(servers: str, log: Log) -> float:
    """Processor seconds of all processes of a query on a topic with these records."""
    from streamduel_kafka.settings import SourceSettings  # noqa: PLC0415
    from streamduel_spark.job import create_session, start  # noqa: PLC0415 - needs pyspark
    from streamduel_spark.kafka_options import kafka_options  # noqa: PLC0415

    raw, counted, dead_letters = (f"{name}-{time.time_ns()}" for name in ("raw", "duels", "dead"))
    for topic in (raw, counted, dead_letters):
        create_topic(servers, topic, 4, {"retention.ms": "-1"})
    tell(f"writing {len(log.records):,} records")
    with KafkaProducer(bootstrap_servers=servers, **PRODUCER) as producer:
        for record in _raw(log.records):
            place = record.offset % 4
            producer.send(raw, record.value, partition=place, timestamp_ms=record.timestamp)
    plan = _plan(log.config)
    plan = plan._replace(spark=plan.spark.model_copy(update={"topic": raw, "lateness_ms": 60_000}))
    source = SourceSettings(bootstrap_servers=[servers], topic=counted, group=counted)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    session = create_session(plan.spark.partitions, "local[2]", settings)
    sink = Sink(source.client_settings, counted, f"{counted}-spark")
    sink.open(plan.spark.topic, dead_letters)
    with tempfile.TemporaryDirectory() as folder:
        began = processor_seconds()
        query = start(
            session, plan, kafka_options(source, raw), sink, lambda *_: None,
            checkpoint=Path(folder).as_uri(), until_end=True,
        )  # fmt: skip
        query.awaitTermination()
        took = processor_seconds() - began
    sink.close()
    tell(f"{took:.1f} s")
    return took


def processor_seconds() -> float:
    """Processor time of this process and all that it has started, those that ended included."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            spent[int(folder.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= grown
    return sum(spent[pid] for pid in own) / os.sysconf("SC_CLK_TCK")


# The tables.


def stages(quick: bool, servers: str | None) -> tuple[list[str], dict[str, dict[str, Spread]]]:
    """Microseconds per record of each stage, as a table and by log and stage."""
    found: dict[str, dict[str, Spread]] = {}
    repetitions = 3 if quick else 5
    for log in logs(QUICK if quick else THOROUGH):
        runs: dict[str, Callable[[], float]] = {
            "decode": partial(decode, log),
            "count": partial(count, log),
            "alone": partial(fold.fold_seconds, log.config, log.records),
        }
        took = in_turns({f"{log.name}, {name}": run for name, run in runs.items()}, repetitions)
        figures = dict(zip(runs, took.values(), strict=True))
        if servers is not None:
            figures["whole"] = [whole_job(servers, log) for _ in range(1 if quick else 3)]
        found[log.name] = {
            name: Spread.of([1e6 * each / len(log.records) for each in seconds])
            for name, seconds in figures.items()
        }
    names = {
        "decode": "decode", "count": "count", "whole": "the whole job", "alone": "streamduel alone"
    }  # fmt: skip
    lines = [
        "| raw records | " + " | ".join(f"{text}, µs" for text in names.values())
        + " | records/s of a core: the whole job, streamduel alone |",
        "|---" + "|---:" * (len(names) + 1) + "|",
    ]  # fmt: skip
    for log_name, spreads in found.items():
        cells = [spreads[name].text(1) if name in spreads else "–" for name in names]
        rates = [_rate(spreads[name]) if name in spreads else "–" for name in ("whole", "alone")]
        lines.append(f"| {log_name} | {' | '.join(cells)} | {', '.join(rates)} |")
    return lines, found


def _rate(figure: Spread) -> str:
    return f"{round(1e6 / figure.median, -3):,.0f}"


def capacity(found: Mapping[str, Mapping[str, Spread]]) -> list[str]:
    """Cores and partitions by rate, computed from the figures."""
    rates = {name: 1e6 / figures["whole"].median for name, figures in found.items()}
    heads = " | ".join(f"cores: {name}" for name in rates)
    lines = [f"| raw records/s | {heads} | partitions of the raw topic |", "|---:" * 5 + "|"]
    for rate in RATES:
        cores = [math.ceil(rate / (USED * each)) for each in rates.values()]
        cells = " | ".join(f"{each:,}" for each in cores)
        lines.append(f"| {rate:,} | {cells} | {max(cores):,} |")
    return lines


def main() -> None:
    """Measure, and write the tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="fewer records and repetitions")
    arguments.add_argument("--kafka", help="a broker as host:port, for the whole job")
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    options = arguments.parse_args()
    table, found = stages(options.quick, options.kafka)
    page = options.out / "scale.md"
    method = METHOD.format(
        cpu=dict(facts())["processor"], repetitions=3 if options.quick else 5,
        count=QUICK if options.quick else THOROUGH, whole=1 if options.quick else 3,
    )  # fmt: skip
    put_in(page, "stages", [*textwrap.wrap(method, 100), "", *table])
    print("\n".join(table))
    if options.kafka:
        put_in(page, "capacity", capacity(found))


if __name__ == "__main__":
    main()
