"""Why brokers that answer do not end a transaction: a topic that cannot be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

from kafka import TopicPartition, errors

from streamduel_kafka.client import Admin, AdminOptions, Found, no_leader, too_few_in_sync
from streamduel_kafka.connecting import connect

CONNECT_SECONDS: Final = 2.0
"""A running cluster answers within a second; the caller has waited already."""

TRANSACTIONS: Final = "__transaction_state"
"""The leader of a partition of it is the coordinator of the transactions in that partition."""

OFFSETS: Final = "__consumer_offsets"
"""A transaction that commits offsets writes to it."""

NO_COORDINATOR: Final = (
    f"no broker coordinates transactions: the leader of a partition of {TRANSACTIONS} is away, or "
    "the topic cannot be created, because there are fewer brokers than "
    f"transaction.state.log.replication.factor (kafka-topics.sh --describe --topic {TRANSACTIONS})"
)


def refusing_writes(topic: str, found: Found | None, configs: Mapping[str, str]) -> str | None:
    """That partitions have too few in-sync replicas to be written, to be put into a sentence.

    Args:
        topic: its name.
        found: its partitions, if they are known.
        configs: its settings.
    """
    least = int(configs.get("min.insync.replicas") or 1)
    refusing = [TopicPartition(topic, it) for it in found.refusing(least)] if found else []
    return too_few_in_sync(refusing, least) if refusing else None


def obstacle(
    settings: Mapping[str, Any], topics: Sequence[str], *, registered: bool = False
) -> errors.KafkaError | None:
    """Why the records and markers of a transaction cannot be written, as far as brokers tell.

    Args:
        settings: of the client.
        topics: those that the transaction writes to.
        registered: the producer has been registered, so there is a topic of transactions, even if
            this user may not see it.

    Returns:
        An error that names partitions, with the class of the brokers' answer to a write; None if
        nothing is in the way, or if this user may not see what is.

    Raises:
        KafkaError, OSError: no broker answers.
    """
    with closing(connect(AdminOptions(), settings, CONNECT_SECONDS)) as admin:
        for topic in (*topics, TRANSACTIONS):
            with suppress(errors.TopicAuthorizationFailedError):
                error = _unwritable(admin, topic)
                is_hidden = isinstance(error, errors.CoordinatorNotAvailableError) and registered
                if error is not None and not is_hidden:
                    return error
    return None


def _unwritable(admin: Admin, topic: str) -> errors.KafkaError | None:
    found = admin.find(topic)
    if found is None:
        return (
            errors.CoordinatorNotAvailableError(NO_COORDINATOR) if topic == TRANSACTIONS else None
        )
    if found.leaderless:
        lost = [TopicPartition(topic, it) for it in found.leaderless]
        return errors.LeaderNotAvailableError(no_leader(lost))
    if not found.under_replicated:
        return None
    refusing = refusing_writes(topic, found, admin.configs(topic) or {})
    return errors.NotEnoughReplicasError(refusing) if refusing else None
