"""Spark Structured Streaming in local mode: its own deduplication, then a stateful processor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks.peers.job import EVERY, PARTITIONS, Job

DUEL = "id STRING, experiment STRING, a STRING, b STRING, winner STRING"
RESULT = "key STRING, value STRING"
BATCH = 100_000
"""Records of a micro-batch at most: without a bound the first one would be the whole topic."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Count(StatefulProcessor):
    """Counts the wins of one experiment; its state is a result as JSON."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._counts = handle.getValueState("counts", "wins STRING, records BIGINT")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Add the pairs of a micro-batch, with a result after every `EVERY`."""
        state = self._counts.get()
        wins: dict[str, int] = json.loads(state[0]) if state else {}
        records = int(state[1]) if state else 0
        results = []
        for frame in rows:
            pairs = frame["pair"]
            start = 0
            while start < len(pairs):
                taken = pairs.iloc[start : start + EVERY - records % EVERY]
                for pair, count in taken.value_counts(sort=False).items():
                    wins[pair] = wins.get(pair, 0) + int(count)
                start += len(taken)
                records += len(taken)
                if records % EVERY == 0:
                    result = {"experiment": key[0], "records": records, "wins": wins}
                    results.append((key[0], json.dumps(result)))
        self._counts.update((json.dumps(wins), records))
        yield pd.DataFrame(results, columns=["key", "value"])

    def close(self) -> None:
        """Nothing to close."""


def counted(raw: DataFrame) -> DataFrame:
    """The results of a topic."""
    duels = raw.select(
        functions.from_json(functions.col("value").cast("string"), DUEL).alias("duel"), "timestamp"
    )
    winner_first = functions.concat_ws(">", "a", "b")
    pair = functions.when(functions.col("winner") == "a", winner_first).otherwise(
        functions.concat_ws(">", "b", "a")
    )
    return (
        duels.select("duel.*", "timestamp")
        .withWatermark("timestamp", "1 hour")
        .dropDuplicatesWithinWatermark(["id"])
        .select("experiment", pair.alias("pair"))
        .groupBy("experiment")
        .transformWithStateInPandas(Count(), RESULT, "Append", "None")
    )


def run(job: Job) -> None:
    """Run until killed."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else whatever python3 is on the path
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("duels")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", os.environ["PEER_JARS"])
        .config("spark.sql.shuffle.partitions", PARTITIONS)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.local.dir", f"{job.state}/scratch")
        .getOrCreate()
    )
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", job.servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", job.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH)
        .load()
    )
    (
        counted(raw)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", job.servers)
        .option("topic", job.results)
        .option("checkpointLocation", f"{job.state}/checkpoint")
        .start()
        .awaitTermination()
    )


if __name__ == "__main__":
    run(Job.given())
