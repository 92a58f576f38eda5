"""Opening the click log: in a group, which shares its partitions, or all of it."""

from __future__ import annotations

import contextlib

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streamduel.connector import SourceOptions
from streamduel.kafka_batches import bound_reads
from streamduel_kafka.clients import COMMAND_SECONDS, CONSUMER, connect_at_start
from streamduel_kafka.control_log import open_control
from streamduel_kafka.instance import Instance
from streamduel_kafka.offsets import ASK_SECONDS
from streamduel_kafka.partitions import GroupOwnership, WholeLog
from streamduel_kafka.rights import Rights
from streamduel_kafka.settings import SourceSettings
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.topics import Topics

# Kafka recommends at most a third of the session timeout. A process without partitions notices by
# its heartbeats that the broker is away, within 5 s (see `kafka_python.connected`).
HEARTBEAT_MS = 1500


def open_source(settings: SourceSettings, options: SourceOptions) -> KafkaSource:
    """Join the group.

    A topic has no incomplete last record, so `options.until_end` makes no difference.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings) as topics:
        found = topics.require_log(settings.topic, settings.partitions)
        topics.require_every_record(settings.topic)
        if settings.control_topic is not None:
            topics.require_log(settings.topic, None, "Write")  # for the markers
            topics.require_control(settings.control_topic, found.partitions)
    purpose = f"{sorted(settings.bootstrap_servers)} {settings.group}"
    instance = Instance(settings.instance, purpose)
    try:
        consumer = connect_at_start(
            KafkaConsumer,
            settings.client_settings,
            group_id=settings.group,
            group_instance_id=instance.name,
            client_id=f"streamduel-{instance.name}",
            # Eager (see GroupOwnership); and a partition stays where its state is.
            partition_assignment_strategy=[StickyPartitionAssignor],
            max_poll_records=settings.max_poll_records,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, settings.session_timeout_ms // 3),
            max_poll_interval_ms=settings.max_poll_interval_ms,
            **CONSUMER,
        )
    except BaseException:
        instance.close()
        raise
    bound_reads(consumer, options.max_batch_bytes)
    ownership = GroupOwnership(consumer)
    consumer.subscribe([settings.topic], listener=ownership)
    # Only to have the topic's metadata before joining the group: a leader that does not know the
    # partitions assigns none at first, and rebalances soon after.
    with contextlib.suppress(errors.KafkaError):
        consumer.beginning_offsets([TopicPartition(settings.topic, 0)], int(1000 * ASK_SECONDS))
    rights = Rights(settings.client_settings, settings.group)
    return KafkaSource(
        consumer, ownership, settings.topic, found, rights,
        control=open_control(settings, forwards=True), group_id=settings.group, instance=instance,
    )  # fmt: skip


def open_log(settings: SourceSettings, options: SourceOptions) -> KafkaSource:
    """Read all partitions, without a group.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings, COMMAND_SECONDS) as topics:
        found = topics.require_log(settings.topic, create=None)
        topics.require_every_record(settings.topic)
        if settings.control_topic is not None:
            topics.require_control(settings.control_topic, found.partitions, create=False)
    consumer = connect_at_start(
        KafkaConsumer,
        settings.client_settings,
        client_id="streamduel-log",
        max_poll_records=settings.max_poll_records,
        **CONSUMER,
    )
    bound_reads(consumer, options.max_batch_bytes)
    ownership = WholeLog(consumer, settings.topic, found.partitions)
    rights = Rights(settings.client_settings)
    control = open_control(settings, forwards=False)
    return KafkaSource(consumer, ownership, settings.topic, found, rights, control=control)
