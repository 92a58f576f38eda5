"""The Spark job without Spark: records are decoded, delivered to buckets, and slices close."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from streamduel.config import Config
from streamduel_spark.bucket import Bucket
from streamduel_spark.crediting import Crediting
from streamduel_spark.decoding import Decoder, RawRecord
from streamduel_spark.parts import Output, chunk_of
from streamduel_spark.plan import Plan
from streamduel_spark.sink import Batch, merge


class Stored(dict[str, bytes]):
    """The state of a bucket."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        del self[key]


class Job:
    """The job, whose batches are cut by hand.

    Attributes:
        stores: the state of each bucket.
        watermark: as Spark computes it, from the batches before.
    """

    def __init__(self, config: Config) -> None:
        assert config.spark is not None
        self.plan = Plan.of(config, config.spark, "dead-letters")
        self.stores = [Stored() for _ in range(config.spark.partitions)]
        self.watermark = 0
        self._newest = 0

    def batch(self, records: Sequence[RawRecord], tasks: int = 1) -> Batch:
        """Read records in several tasks, then close what is due."""
        outputs: list[Output] = []
        rows: list[tuple[int, str, int, bytes]] = []
        late = self.watermark
        self.watermark = max(late, self._newest - self.plan.delay_ms)
        for task in range(tasks):
            decoder = Decoder(self.plan, "raw")
            outputs += decoder.read(records[task::tasks])
            parts, newest, tally = decoder.take()
            outputs.append(tally)
            for place, chunk in parts.items():
                if newest[place] > late:  # what is at the watermark is dropped, too
                    rows.append((place.bucket, str(place.lane), place.start, chunk_of(chunk)))
                    self._newest = max(self._newest, newest[place])
        random.Random(len(records)).shuffle(rows)  # Spark promises no order
        crediting = Crediting(self.plan.experiments)
        for number, store in enumerate(self.stores):
            bucket = Bucket(self.plan, store, crediting)
            for _, lane, start, body in (row for row in rows if row[0] == number):
                bucket.add(lane, start, body)
            outputs += bucket.advance(self.watermark)
            bucket.save()
        return merge(outputs, self.plan.limits.max_duels_per_record)


def raw(values: Iterable[bytes | None], first_ts: int, step_ms: int = 1) -> list[RawRecord]:
    """Records with timestamps of even distance."""
    return [
        RawRecord(0, number, first_ts + number * step_ms, b"search", value)
        for number, value in enumerate(values)
    ]


def spark(**settings: Any) -> dict[str, Any]:
    """The section `spark` of a configuration."""
    return {"topic": "raw", "checkpoint": "c", "slice_ms": 1000, "partitions": 3, **settings}
