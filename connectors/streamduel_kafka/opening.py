"""Opening the click log: in a group, which shares its partitions, or all of it."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import structlog

from streamduel.connector import SourceOptions
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import METADATA_SECONDS, ConsumerOptions, Membership
from streamduel_kafka.connecting import COMMAND_SECONDS, connect_at_start
from streamduel_kafka.control_log import open_control
from streamduel_kafka.group import await_alone, leave, leave_unassigned
from streamduel_kafka.instance import Instance
from streamduel_kafka.partitions import GroupOwnership, WholeLog
from streamduel_kafka.settings import SourceSettings
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.topics import BOUND_IT, Topics

log = structlog.stdlib.get_logger(__name__)

HEARTBEAT_MS = 1500
"""Kafka recommends at most a third of the session timeout. A process without partitions notices by
its heartbeats that the broker is down, within 5 s (see `Consumer.connected`)."""


def open_source(settings: SourceSettings, options: SourceOptions) -> KafkaSource:
    """Join the group.

    A topic has no incomplete last record, so `options.until_end` makes no difference.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings) as topics:
        found, controls = topics.require_log(settings.topic, settings.partitions), None
        topics.require_every_record(settings.topic)
        if settings.control_topic is not None:
            topics.require_log(settings.topic, None, "Write")  # for the markers
            controls = topics.require_control(settings.control_topic, found.partitions)
    for topic, compression in topics.unbounded.items():
        log.warning(
            "decompression not bounded", topic=topic, compression=compression, advice=BOUND_IT
        )
    purpose = f"{sorted(settings.bootstrap_servers)} {settings.group}"
    ownership = GroupOwnership()
    with ExitStack() as opened:
        instance = opened.enter_context(Instance(settings.instance, purpose))
        if options.alone is not None:
            await_alone(settings, instance.name, options.alone)
        member = Membership(
            instance=instance.name,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_ms=min(HEARTBEAT_MS, settings.session_timeout_ms // 3),
            max_poll_interval_ms=settings.max_poll_interval_ms,
        )
        reader = _reader(settings, options, f"streamduel-{instance.name}", member)
        consumer = connect_at_start(reader, settings.client_settings)
        opened.callback(consumer.close)
        consumer.subscribe(settings.topic, ownership)
        control = open_control(settings, controls, forwards=True)
        opened.pop_all()
    rights = Rights(settings.client_settings, settings.group)
    return KafkaSource(
        consumer, ownership, settings.topic, found, rights,
        control=control, group_id=settings.group, instance=instance,
        leave=None if options.alone is None else partial(leave, settings, instance.name),
        leave_unassigned=partial(leave_unassigned, settings, instance.name),
    )  # fmt: skip


def open_log(settings: SourceSettings, options: SourceOptions) -> KafkaSource:
    """Read all partitions, without a group.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings, COMMAND_SECONDS) as topics:
        found, controls = topics.require_log(settings.topic, create=None), None
        topics.require_every_record(settings.topic)
        if settings.control_topic is not None:
            controls = topics.require_control(
                settings.control_topic, found.partitions, create=False
            )
    with ExitStack() as opened:
        reader = _reader(settings, options, "streamduel-log")
        consumer = connect_at_start(reader, settings.client_settings)
        opened.callback(consumer.close)
        ownership = WholeLog(consumer, settings.topic, found.partitions)
        control = open_control(settings, controls, forwards=False)
        opened.pop_all()
    rights = Rights(settings.client_settings)
    return KafkaSource(consumer, ownership, settings.topic, found, rights, control=control)


def _reader(
    settings: SourceSettings,
    options: SourceOptions,
    client_id: str,
    member: Membership | None = None,
) -> ConsumerOptions:
    return ConsumerOptions(
        client_id=client_id,
        group=settings.group if member is not None else None,
        membership=member,
        # An offset that the topic does not hold is an error, see `KafkaSource`.
        skips_deleted=False,
        max_records=settings.max_poll_records,
        max_batch_bytes=options.max_batch_bytes,
        # `partition_bytes`, 1 MB by default, are some 3,000 records of a usual click log: about
        # one poll, so that all partitions are fetched again at the same time.
        metadata_seconds=METADATA_SECONDS,
    )
