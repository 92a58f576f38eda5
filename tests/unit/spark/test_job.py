"""The stages as Spark runs them, on batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from streamduel.config.model import SparkSettings
from streamduel.errors import ConfigurationError
from streamduel_spark.job import FLUSH_BYTES, check_batch, decode_with
from tests.unit.spark.cluster import spark
from tests.unit.spark.test_slices import IMPRESSION, START, job
from tests.unit.stream.folding import text

BATCH = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"3"}}
{"raw":{"0":13,"1":12}}"""

LARGE = text(IMPRESSION, query="x" * 1000, junk="x" * 900_000)


def test_large_records_are_packed_before_they_fill_the_memory() -> None:
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for number in range(100):
            read += len(LARGE)
            yield pa.RecordBatch.from_pydict({
                "key": pa.array([None], pa.binary()), "value": [LARGE], "partition": [0],
                "offset": [number], "timestamp": pa.array([START * 1000], pa.timestamp("us")),
            })  # fmt: skip

    rows = decode_with(job().plan)(batches())
    next(rows)
    assert read <= FLUSH_BYTES + len(LARGE)
    assert sum(1 for _ in rows) >= 90_000_000 // FLUSH_BYTES - 1


def test_a_batch_of_the_same_settings_may_be_continued() -> None:
    check_batch(BATCH, SparkSettings.model_validate(spark(lateness_ms=7)))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"partitions": 2},
         "spark.partitions must stay 3 with this checkpoint (found 2); another number needs a new"
         " spark.checkpoint."),
        ({"topic": "other"},
         "spark.topic must stay 'raw' with this checkpoint (found 'other'); another topic needs a"
         " new spark.checkpoint."),
    ],
)  # fmt: skip
def test_a_checkpoint_keeps_its_partitions_and_its_topic(
    changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_batch(BATCH, SparkSettings.model_validate(spark(**changed)))
    assert str(refused.value) == sentence
