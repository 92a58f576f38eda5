"""Records of librdkafka's messages, made quickly: a poll has thousands."""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

from confluent_kafka import Message
from kafka import TopicPartition


class Record(NamedTuple):
    """A `LogRecord`."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


_record = partial(tuple.__new__, Record)


def runs(messages: list[Message]) -> list[tuple[TopicPartition, list[Message]]]:
    """Cut messages where the partition changes: a fetch of one partition comes in a piece."""
    places = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    left = iter(messages)
    return [
        (TopicPartition(*place), list(islice(left, sum(1 for _ in run))))
        for place, run in groupby(places)
    ]


def records_of(messages: list[Message]) -> list[Record]:
    """The records of messages without errors."""
    times = [stamp for _, stamp in map(Message.timestamp, messages)]
    columns = zip(
        map(Message.offset, messages), times, map(Message.key, messages),
        map(Message.value, messages), strict=True,
    )  # fmt: skip
    return list(map(_record, columns))
