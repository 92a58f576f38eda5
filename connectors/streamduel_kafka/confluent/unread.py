"""Batches that librdkafka cannot read: kafka-python reads them, or reports what is wrong.

librdkafka reports a batch that it cannot decompress, or which exceeds its limit with or without
decompression, and fetches it again and again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kafka import TopicPartition, errors

from streamduel.connector import LogRecord
from streamduel_kafka.client import Consumer, ConsumerOptions

SECONDS: Final = 5.0
"""Timeout of connecting and of reading one batch."""


class UnreadBatches:
    """A second consumer, opened when it is needed.

    Args:
        settings: of the client.
        options: of the consumer that reported the batch.
    """

    def __init__(self, settings: Mapping[str, Any], options: ConsumerOptions) -> None:
        self._settings = settings
        self._options = replace(options, membership=None, group=None)
        self._consumer: Consumer | None = None

    def read(self, at: TopicPartition, position: int) -> tuple[Sequence[LogRecord], int]:
        """Continue reading from a position.

        Returns:
            Records, among which a `Rejected` stands for a batch, and the position behind them.

        Raises:
            KafkaError: the brokers did not answer in time, or the batch is damaged.
        """
        if self._consumer is None:
            from streamduel_kafka.kafka_python import open_consumer  # noqa: PLC0415 - rarely used

            self._consumer = open_consumer(self._settings, self._options, SECONDS)
        self._consumer.assign({at: position})
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            records = self._consumer.poll(0.1).get(at, ())
            after = self._consumer.position(at)
            if records or after > position:
                return records, after
        raise errors.KafkaTimeoutError(f"no answer within {SECONDS:.0f} s")

    def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            self._consumer.close()
