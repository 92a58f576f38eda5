"""The Spark job: raw records in, closed slices out."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamduel.config.model import SparkSettings
from streamduel.errors import ConfigurationError
from streamduel_spark.bucket import Bucket
from streamduel_spark.crediting import Crediting
from streamduel_spark.decoding import Decoder, RawRecord
from streamduel_spark.parts import Output, chunk_of, pack, unpack_output
from streamduel_spark.plan import Plan, buckets
from streamduel_spark.sink import Sink, merge

KAFKA_SOURCE: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
"""Spark's Kafka source, in the version of this Spark, on Maven Central."""

CONTAINED: Final = "org.apache.hadoop:hadoop-client-api,org.apache.hadoop:hadoop-client-runtime"
"""Dependencies of the Kafka source that pyspark contains, 40 MB."""

FLUSH_RECORDS: Final = 50_000
"""Records whose parts are packed together: more make fewer rows for Spark, and take more memory."""

FLUSH_BYTES: Final = 2**24
"""Bytes of raw records whose parts are packed together: far fewer large records fit into memory.
Also the most bytes of rows that Spark passes to Python together."""

_ROWS: Final = pa.schema([
    ("bucket", pa.int32()),
    ("at", pa.timestamp("us", "UTC")),
    ("lane", pa.string()),
    ("start", pa.int64()),
    ("body", pa.binary()),
])  # fmt: skip
ROWS: Final = "bucket int, at timestamp, lane string, start bigint, body binary"
"""A chunk of a slice; or, without `lane` and `at`, an output that belongs to no slice."""


def create_session(
    partitions: int, master: str | None, settings: Mapping[str, str]
) -> SparkSession:
    """Start Spark, or join the one that `spark-submit` has started.

    Args:
        partitions: parts of the state.
        master: where it runs; None leaves that to `spark-submit`.
        settings: Spark's own, by name.
    """
    builder = SparkSession.builder.appName("streamduel")
    if master is not None:
        builder = builder.master(master).config("spark.jars.packages", KAFKA_SOURCE)
        builder = builder.config("spark.jars.excludes", CONTAINED)
    if master is not None and master.startswith("local"):
        # Else Spark's workers run the first `python3` of PATH, which may lack streamduel.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    state = "spark.sql.streaming.stateStore"
    own = {
        "spark.ui.showConsoleProgress": "false",  # it would overwrite our own lines
        "spark.sql.execution.arrow.maxBytesPerBatch": str(FLUSH_BYTES),
        f"{state}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{state}.rocksdb.changelogCheckpointing.enabled": "true",
    }
    kept = {"spark.sql.shuffle.partitions": str(partitions)}  # `_check` compares it
    for name, value in {**own, **settings, **kept}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start(
    session: SparkSession,
    plan: Plan,
    options: Mapping[str, str],
    sink: Sink,
    report: Callable[[int, Mapping[str, int]], None],
    *,
    checkpoint: str,
    until_end: bool,
) -> StreamingQuery:
    """Start the query.

    Args:
        session: Spark.
        plan: the experiments and limits.
        options: those of Spark's Kafka source.
        sink: writes the batches.
        report: called after each batch, with its number and the records by outcome.
        checkpoint: where Spark keeps its state.
        until_end: stop at the present end of the topic.
    """
    _check(session, plan.spark, checkpoint)
    raw = session.readStream.format("kafka").options(**options).load()
    chunks = raw.select("key", "value", "partition", "offset", "timestamp").mapInArrow(
        decode_with(plan), ROWS
    )
    slices = (
        chunks.withWatermark("at", f"{plan.delay_ms} milliseconds")
        .groupBy("bucket")
        .transformWithStateInPandas(Slices(plan), "body binary", "Append", "EventTime")
    )
    named: list[str] = []
    started = threading.Event()

    def write(batch: DataFrame, number: int) -> None:
        outputs = [unpack_output(row.body) for row in batch.collect()]
        merged = merge(outputs, plan.limits.max_duels_per_record)
        started.wait()
        if sink.write(named[0], number, merged.messages):
            report(number, merged.tally)

    writer = slices.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    if until_end:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{plan.spark.interval_ms} milliseconds")
    query = writer.start()
    named.append(str(query.id))
    started.set()
    return query


def _check(session: SparkSession, spark: SparkSettings, checkpoint: str) -> None:
    """Check that the settings of the job fit its checkpoint, before a start spoils it.

    Spark would take the checkpoint's partitions, and would write another topic into it.
    """
    folder = re.sub(r"[][{}*?\\]", r"\\\g<0>", f"{checkpoint}/offsets")  # no pattern of names
    try:
        batch = session.read.text(folder, wholetext=True).first()
    except AnalysisException:  # there is no such folder
        return
    if batch is not None:
        check_batch(batch.value, spark)


def check_batch(batch: str, spark: SparkSettings) -> None:
    """Check that the settings of the job are those of a batch of its checkpoint.

    Args:
        batch: what Spark has written about the batch, in the folder `offsets` of the checkpoint.
        spark: the settings.

    Raises:
        ConfigurationError: they are not.
    """
    _, settings, offsets = batch.splitlines()
    partitions = json.loads(settings)["conf"]["spark.sql.shuffle.partitions"]
    (topic,) = json.loads(offsets)
    if int(partitions) != spark.partitions:
        raise ConfigurationError(
            f"spark.partitions must stay {partitions} with this checkpoint (found "
            f"{spark.partitions}); another number needs a new spark.checkpoint."
        )
    if topic != spark.topic:
        raise ConfigurationError(
            f"spark.topic must stay '{topic}' with this checkpoint (found '{spark.topic}'); "
            "another topic needs a new spark.checkpoint."
        )


def decode_with(plan: Plan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that turns raw records into rows of `ROWS`."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoder, numbers = Decoder(plan, plan.spark.topic), buckets(plan.spark.partitions)
        outputs: list[Output] = []
        waiting = size = 0
        for batch in batches:
            outputs.extend(decoder.read(_records(batch)))
            waiting += batch.num_rows
            size += batch.nbytes
            if waiting >= FLUSH_RECORDS or size >= FLUSH_BYTES:
                yield _flush(decoder, numbers, outputs)
                outputs, waiting, size = [], 0, 0
        yield _flush(decoder, numbers, outputs)

    return decode


def _records(batch: pa.RecordBatch) -> Iterator[RawRecord]:
    micros = batch.column("timestamp").cast(pa.int64()).to_pylist()
    columns = [batch.column(name).to_pylist() for name in ("key", "value")]
    places = [batch.column(name).to_pylist() for name in ("partition", "offset")]
    for key, value, partition, offset, micro in zip(*columns, *places, micros, strict=True):
        yield RawRecord(partition, offset, micro // 1000, key, value)


def _flush(decoder: Decoder, numbers: list[int], outputs: list[Output]) -> pa.RecordBatch:
    parts, newest, tally = decoder.take()
    rows: list[tuple[Any, ...]] = [
        (numbers[place.bucket], newest[place] * 1000, str(place.lane), place.start, chunk_of(chunk))
        for place, chunk in parts.items()
    ]
    rows += [(numbers[0], None, "", 0, pack(output)) for output in [*outputs, tally]]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROWS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROWS)


class Slices(StatefulProcessor):
    """Keeps the open slices of each bucket in Spark's state, and closes them by the watermark.

    Args:
        plan: the experiments and limits.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._handle = handle
        self._store = MapStore(handle.getMapState("slices", "key string", "value binary"))
        self._crediting = Crediting(self._plan.experiments)

    def handleInputRows(  # noqa: N802 - Spark's name, as are those of the arguments
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Keep chunks; outputs that belong to no slice are passed on immediately."""
        bucket = Bucket(self._plan, self._store, self._crediting)
        for frame in rows:
            passed = []
            for lane, start, body in zip(frame["lane"], frame["start"], frame["body"], strict=True):
                if not lane:
                    passed.append(body)
                elif (due := bucket.add(lane, int(start), body)) is not None:
                    self._handle.registerTimer(due)
            if passed:
                yield pd.DataFrame({"body": passed})
        bucket.save()

    def handleExpiredTimer(  # noqa: N802 - Spark's name, as are those of the arguments
        self,
        key: Any,  # noqa: ARG002
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Close all slices that are due; the timers of the others then find nothing to do."""
        bucket = Bucket(self._plan, self._store, self._crediting)
        closed = [pack(it) for it in bucket.advance(timerValues.getCurrentWatermarkInMs())]
        if closed:
            yield pd.DataFrame({"body": closed})
        bucket.save()


class MapStore:
    """The state of a bucket in a map of Spark's state.

    Args:
        state: the map.
    """

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._state.updateValue((key,), (value,))

    def delete(self, key: str) -> None:
        """Remove a key."""
        self._state.removeKey((key,))
