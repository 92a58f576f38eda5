"""The stages as Spark runs them, on batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streamduel_spark.job import FLUSH_BYTES, decode_with
from tests.unit.spark.test_slices import IMPRESSION, START, job
from tests.unit.stream.folding import text

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
