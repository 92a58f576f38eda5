"""Settings of the consumers of confluent-kafka, and opening one."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from confluent_kafka import Consumer as Librdkafka

from streamduel_kafka.client import AdminOptions, Consumer, ConsumerOptions
from streamduel_kafka.confluent.admin import open_admin
from streamduel_kafka.confluent.brokers import Brokers
from streamduel_kafka.confluent.consumer import ConfluentConsumer
from streamduel_kafka.confluent.failures import translating
from streamduel_kafka.confluent.group_member import GroupMember
from streamduel_kafka.confluent.opening import Errors, await_cluster, configuration
from streamduel_kafka.confluent.unread import UnreadBatches

FETCH_BYTES: Final = 16 * 2**20
"""The most bytes of a fetch from one broker, of all partitions together."""

CONSUMER: Final[dict[str, Any]] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Reports the position behind the markers of transactions.
    "enable.partition.eof": True,
    "check.crcs": True,
    "fetch.max.bytes": FETCH_BYTES,
    "fetch.wait.max.ms": 50,
    # By default librdkafka waits a second before it fetches again from a partition of which enough
    # is queued; and while a poll empties the queue, nothing is fetched: reading took 3.6 times as
    # long.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 50_000,
    # Fetched bytes that are not polled yet, decompressed; exceeded by what one fetch becomes.
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.error.backoff.ms": 100,
}

RECEIVE_BYTES: Final = FETCH_BYTES + 2**20
"""The smallest allowed limit of an answer: a fetch and its frame."""


def open_consumer(
    settings: Mapping[str, Any], options: ConsumerOptions, seconds: float
) -> Consumer:
    """Connect a consumer, within this time."""
    open_one = partial(_open, settings, options)
    if options.membership is None:
        return open_one(seconds)
    return cast("Consumer", GroupMember(open_one, seconds))


def _open(
    settings: Mapping[str, Any], options: ConsumerOptions, seconds: float
) -> ConfluentConsumer:
    deadline = time.monotonic() + seconds
    heard, brokers = Errors(), Brokers()
    member = options.membership
    more: dict[str, Any] = {
        **CONSUMER,
        "client.id": options.client_id,
        # librdkafka needs one, and never joins it unless it subscribes.
        "group.id": options.group or f"streamduel-reader-{uuid.uuid4()}",
        "auto.offset.reset": "earliest" if options.skips_deleted else "error",
        "fetch.message.max.bytes": options.partition_bytes,
        # Ends the decompression of zstd.
        "receive.message.max.bytes": max(options.max_batch_bytes, RECEIVE_BYTES),
        "topic.metadata.refresh.interval.ms": int(1000 * options.metadata_seconds),
    }
    if member is not None:
        more |= {
            "group.instance.id": member.instance,
            "partition.assignment.strategy": "range",  # eager, see `GroupOwnership`
            "session.timeout.ms": member.session_timeout_ms,
            "heartbeat.interval.ms": member.heartbeat_ms,
            "max.poll.interval.ms": member.max_poll_interval_ms,
            "statistics.interval.ms": Brokers.INTERVAL_MS,
            "stats_cb": brokers.update,
        }
    with translating():
        consumer = Librdkafka(configuration(settings, heard, **more))
    try:
        await_cluster(consumer, heard, seconds, lambda: consumer.poll(0))
        rest = deadline - time.monotonic()
        admin = open_admin(settings, AdminOptions(client_id=options.client_id), rest)
    except BaseException:
        consumer.close()
        raise
    unread = UnreadBatches(settings, options)
    return ConfluentConsumer(consumer, admin, brokers, unread, options, heard)
