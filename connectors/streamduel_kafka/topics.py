"""Checking the topics before anything is read, and creating missing ones."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, Self

import structlog
from kafka import KafkaAdminClient, errors
from kafka.admin import ConfigResource, ConfigResourceType

from streamduel.errors import ConnectorError
from streamduel_kafka.clients import (
    BOOTSTRAP_SECONDS,
    connect_at_start,
    reason,
    unreachable,
)
from streamduel_kafka.settings import Cluster
from streamduel_kafka.transaction import MAX_REQUEST_BYTES

log = structlog.stdlib.get_logger(__name__)

# A new topic is usable once its leaders are elected and every broker knows it.
CREATE_SECONDS = 30.0

COMPACTED = {"cleanup.policy": "compact"}

SNAPSHOTS = {
    **COMPACTED,
    # The entry of an experiment with hundreds of arms holds a matrix of some megabytes.
    "max.message.bytes": str(MAX_REQUEST_BYTES),
    # A restart reads a partition from its beginning. Replaced records are only removed from closed
    # segments: close them at 64 MB or ten minutes, and compact early.
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": str(10 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}


class New(NamedTuple):
    """The number of partitions and the settings of a new topic; -1: the brokers' default."""

    partitions: int
    configs: dict[str, str]


class Topics:
    """Checks topics, and creates them if the settings allow it.

    Raises:
        ConnectorError: from every method, with what is wrong and how to fix it.
    """

    def __init__(self, cluster: Cluster, seconds: float = BOOTSTRAP_SECONDS) -> None:
        self._cluster = cluster
        self._settings = cluster.client_settings
        self._admin: Any = connect_at_start(KafkaAdminClient, self._settings, seconds)

    def require_log(self, topic: str, create: int | None) -> int:
        """The click log's number of partitions; if it is missing, create it with so many.

        `create` None never creates it.
        """
        return self._require(topic, "source.topic", New(create, {}) if create else None)

    def require_assignments(self, topic: str, *, create: bool = True) -> None:
        """The assignments' topic must be compacted, to keep the newest of each experiment."""
        self._require(topic, "sink.assignments", New(-1, COMPACTED) if create else None)
        self._require_compacted(topic, "the assignments in it would be deleted by age")

    def require_dead_letters(self, topic: str) -> None:
        """The dead letters' topic must exist."""
        self._require(topic, "sink.dead_letters", New(-1, {}))

    def require_snapshots(self, topic: str, partitions: int | None) -> int:
        """The snapshots' topic must be compacted, with as many partitions as the click log.

        `partitions` None neither checks their number nor creates the topic.

        Returns:
            Its number of partitions.
        """
        new = None if partitions is None else New(partitions, SNAPSHOTS)
        found = self._require(topic, "snapshots.topic", new)
        if partitions is not None and found != partitions:
            raise ConnectorError(
                f"snapshots.topic '{topic}' has {found} partitions, but source.topic has "
                f"{partitions}; it must have as many: take another topic for the snapshots."
            )
        self._require_compacted(topic, "the snapshots in it would be deleted by age")
        return found

    def _require(self, topic: str, setting: str, new: New | None) -> int:
        try:
            partitions = self._partitions(topic)
            if partitions is None:
                if not self._cluster.create_topics:
                    raise ConnectorError(
                        f"{setting} '{topic}' does not exist; create it, or set "
                        "source.create_topics to true."
                    )
                if new is None:
                    raise ConnectorError(
                        f"{setting} '{topic}' does not exist yet; start 'streamduel run' first, "
                        "which creates it."
                    )
                self._create(topic, new)
                partitions = self._partitions(topic)
        except errors.KafkaError as error:
            if isinstance(error, errors.TopicAuthorizationFailedError):
                raise ConnectorError(
                    f"{setting} '{topic}' may not be described by this user; grant Describe on it."
                ) from error
            raise self._unusable(error) from error
        assert partitions is not None
        return partitions

    def _partitions(self, topic: str) -> int | None:
        found = self._admin.describe_topics([topic])[0]
        kind = errors.for_code(found["error_code"])
        if kind is errors.UnknownTopicOrPartitionError:
            return None
        if kind is not errors.NoError:
            raise kind()
        return len(found["partitions"])

    def _create(self, topic: str, new: New) -> None:
        described = {
            "num_partitions": new.partitions,
            "replication_factor": self._cluster.replication_factor,
            "configs": new.configs,
        }
        try:
            self._admin.create_topics({topic: described})
        except errors.TopicAlreadyExistsError:
            pass  # another instance has created it
        except errors.BrokerResponseError as error:
            # Its text is the whole request; its class tells what is wrong.
            raise ConnectorError(
                f"topic '{topic}' could not be created with {new.partitions} partitions and "
                f"replication factor {self._cluster.replication_factor} (-1: the brokers' "
                f"default): {type(error).__name__}."
            ) from error
        self._admin.wait_for_topics([topic], timeout_ms=int(1000 * CREATE_SECONDS))
        log.info("topic created", topic=topic, partitions=new.partitions)

    def _require_compacted(self, topic: str, why: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        try:
            found = self._admin.describe_configs([resource], config_filter="all")
        except errors.KafkaError as error:
            raise self._unusable(error) from error
        policy = found.get("topic", {}).get(topic, {}).get("cleanup.policy")
        if policy is None:  # the answer is empty for a user without DescribeConfigs
            log.warning(
                "cleanup policy unknown", topic=topic,
                advice="this user lacks DescribeConfigs; make sure that it is compact",
            )  # fmt: skip
        elif policy["value"] != "compact":
            raise ConnectorError(
                f"topic '{topic}' has cleanup.policy={policy['value']}; it must be compact: {why}."
            )

    def _unusable(self, error: errors.KafkaError) -> ConnectorError:
        if error.retriable:
            return unreachable(self._settings, errors.KafkaTimeoutError(reason(error)))
        return unreachable(self._settings, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._admin.close()
