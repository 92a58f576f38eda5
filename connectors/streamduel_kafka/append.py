"""Appending records to the click log, each in the home partition of its experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafka import errors

from streamduel.errors import ConnectorError, UncertainError
from streamduel.kafka_clients import TOO_LARGE
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import ProducerOptions
from streamduel_kafka.connecting import connect_at_start, is_fatal, reason
from streamduel_kafka.partitions import home_partition
from streamduel_kafka.settings import SourceSettings
from streamduel_kafka.topics import Topics

APPEND_SECONDS: Final = 15.0
"""Longer than an election of a leader or the restart of a broker usually takes."""

GRACE_SECONDS: Final = 5.0
"""The producer gives up after the time above and says why; this only bounds its own defects."""


def append_records(
    settings: SourceSettings, records: Iterable[tuple[bytes, bytes]]
) -> Iterator[str]:
    """Write records to their keys' home partitions of the control topic, or of the click log.

    Yields:
        The place of each once it is written, such as `clicks-3@1234`.

    Raises:
        ConnectorError: the next record was not written.
        UncertainError: the brokers did not answer in time; whether it was written is unknown.
    """
    with Topics(settings, APPEND_SECONDS) as topics:
        if settings.control_topic is None:
            topic, setting = settings.topic, "source.topic"
            partitions = topics.require_log(topic, settings.partitions, "Write").partitions
        else:
            topic, setting = settings.control_topic, "source.control_topic"
            partitions = topics.require_control(topic, None, "Write").partitions
    options = ProducerOptions(
        client_id="streamduel-append", seconds=APPEND_SECONDS, block_seconds=APPEND_SECONDS
    )
    producer = connect_at_start(options, settings.client_settings, APPEND_SECONDS)
    try:
        for key, value in records:
            partition = home_partition(key.decode(), partitions)
            sent = producer.send(topic, key, value, partition)
            yield f"{topic}-{partition}@{sent.wait(APPEND_SECONDS + GRACE_SECONDS)}"
    except (errors.KafkaError, ValueError) as error:
        # ValueError: the topic, or that partition of it, has disappeared from the metadata.
        refused = Rights(settings.client_settings).refused(error, "Write", topic, setting)
        raise refused or _failed(f"{setting} '{topic}'", error) from error
    finally:
        producer.discard()


def _failed(where: str, error: Exception) -> ConnectorError:
    if isinstance(error, (ValueError, *TOO_LARGE)) or is_fatal(error):
        return ConnectorError(
            f"{where} does not take the record: {reason(error)}; nothing was written."
        )
    return UncertainError(
        f"Kafka did not say that the record was written to {where} ({reason(error)})."
    )
