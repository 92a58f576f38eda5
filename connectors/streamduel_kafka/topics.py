"""Checking the topics before anything is read, and creating missing ones."""

from __future__ import annotations

import time
from typing import NamedTuple, Self

import structlog
from kafka import TopicPartition, errors

from streamduel.errors import ConnectorError, MissingError, counted
from streamduel.kafka_rights import Rights, missing
from streamduel_kafka.client import BATCH_BYTES, AdminOptions, Found
from streamduel_kafka.connecting import (
    BOOTSTRAP_SECONDS,
    connect_at_start,
    reason,
    unreachable,
)
from streamduel_kafka.obstacle import refusing_writes
from streamduel_kafka.settings import Cluster
from streamduel_kafka.transaction import MAX_REQUEST_BYTES

log = structlog.stdlib.get_logger(__name__)

CREATE_SECONDS = 30.0
"""A new topic is usable once its leaders are elected and every broker knows it."""

PAUSE_SECONDS = 0.05
"""The time between two looks at a new topic."""

COMPACTED = {
    "cleanup.policy": "compact",
    # A plan of hundreds of arms, and the matrix of such an experiment, take some megabytes.
    "max.message.bytes": str(MAX_REQUEST_BYTES),
}

KEPT = {"cleanup.policy": "delete", "compression.type": "snappy"}
"""Whatever the brokers' default is: an event log keeps every record. The broker compresses what
producers send again, so that no hostile batch is large in memory only: see `BOUNDED`."""

BOUNDED = frozenset({"snappy", "uncompressed"})
"""Values of `compression.type` with which no fetch can exhaust the memory of librdkafka. It has a
limit for a batch of zstd, but decompresses all batches of a fetch, and a MB holds hundreds."""

BOUND_IT = (
    "if you do not trust all its writers, set compression.type of the topic to snappy or "
    "uncompressed, or take source.client kafka-python"
)

LETTERS = {"cleanup.policy": "delete"}

CONTROL = {
    **KEPT,
    # A replay needs every control record to which the click log refers; there are few.
    "retention.ms": "-1",
}

SNAPSHOTS = {
    **COMPACTED,
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

    Attributes:
        unbounded: `compression.type` of the logs that were checked, by topic, if small batches can
            exhaust the memory of the client.
        accepted: `max.message.bytes` of the topics that were checked, as far as it is known.
        leaderless: the partitions without a leader of the topics that were checked.
        refusing: that partitions refuse writes, by topic, as far as it is known.

    Raises:
        ConnectorError: from every method, with what is wrong and how to fix it; a MissingError for
            a topic that does not exist.
    """

    def __init__(self, cluster: Cluster, seconds: float = BOOTSTRAP_SECONDS) -> None:
        self._cluster = cluster
        self._settings = cluster.client_settings
        self._rights = Rights(self._settings)
        self._admin = connect_at_start(AdminOptions(), self._settings, seconds)
        self.unbounded: dict[str, str] = {}
        self.accepted: dict[str, int] = {}
        self.leaderless: dict[str, list[TopicPartition]] = {}
        self.refusing: dict[str, str] = {}
        self._found: dict[str, Found] = {}

    @property
    def batch_bytes(self) -> int:
        """The size of batches that each of the topics accepts, as far as that is known."""
        return min([BATCH_BYTES, *self.accepted.values()])

    def require_log(self, topic: str, create: int | None, operation: str = "Read") -> Found:
        """The click log; if it is missing, create it with this number of partitions.

        `create` None never creates it. `operation` is what the caller does with it.
        """
        new = New(create, KEPT) if create else None
        return self._require(topic, "source.topic", new, operation)

    def require_every_record(self, topic: str, setting: str = "source.topic") -> None:
        """The topic must not be compacted: that keeps one record of each experiment."""
        found = self._configs(topic, "delete")
        if found is None:
            return
        self._refuse_compacted(
            topic, setting, found["cleanup.policy"],
            "compaction removes all records of an experiment but the last; those that it has "
            "removed are lost, and nothing counts them. Keep the others with",
        )  # fmt: skip
        if self._cluster.client == "confluent" and found["compression.type"] not in BOUNDED:
            self.unbounded[topic] = found["compression.type"]
        facts = {
            "topic": topic,
            "timestamps": found["message.timestamp.type"],
            "retention_ms": int(found["retention.ms"]),
        }
        if setting == "source.topic":
            log.info("click log opened", **facts)
        else:
            log.info("control topic opened", **facts)

    def require_control(
        self, topic: str, partitions: int | None, operation: str = "Read", *, create: bool = True
    ) -> Found:
        """The control topic: with as many partitions as the click log, and not compacted.

        `partitions` None neither checks their number nor creates the topic.
        """
        new = New(partitions, CONTROL) if create and partitions is not None else None
        found = self._require(topic, "source.control_topic", new, operation)
        if partitions not in (None, found.partitions):
            raise ConnectorError(
                f"source.control_topic '{topic}' has {counted(found.partitions, 'partition')}, but "
                f"source.topic has {partitions}; it must have as many: take another topic for the "
                f"control records."
            )
        self.require_every_record(topic, "source.control_topic")
        return found

    def require_assignments(self, topic: str) -> Found:
        """The assignments' topic must be compacted, to keep the newest of each experiment."""
        found = self._require(topic, "sink.assignments", New(-1, COMPACTED), "Write")
        self._require_compacted(topic, "the assignments in it would be deleted by age")
        return found

    def require_published(self, topic: str) -> None:
        """The assignments' topic must exist, for a reader."""
        self._require(topic, "sink.assignments", None, "Read")

    def require_dead_letters(self, topic: str) -> None:
        """The dead letters' topic must exist and not be compacted."""
        setting = "sink.dead_letters"
        self._require(topic, setting, New(-1, LETTERS), "Write")
        found = self._configs(topic, "delete")
        if found is not None:
            self._refuse_compacted(
                topic, setting, found["cleanup.policy"],
                "Kafka refuses records without a key in a compacted topic, and compaction removes "
                "all dead letters with the same key but the last. Change it with",
            )  # fmt: skip

    def require_snapshots(self, topic: str, partitions: int | None) -> int:
        """The snapshots' topic must be compacted, with as many partitions as the click log.

        `partitions` None, for readers, neither checks their number nor creates the topic.

        Returns:
            Its number of partitions.
        """
        new = None if partitions is None else New(partitions, SNAPSHOTS)
        operations = ["Read"] if partitions is None else ["Read", "Write"]
        found = self._require(topic, "snapshots.topic", new, *operations).partitions
        if partitions is not None and partitions != found:
            added = (
                " If partitions were added to source.topic, stop its producers first, which write "
                "to other partitions now (docs/repair.md, 'Steps of a repartitioning')."
            )
            raise ConnectorError(
                f"snapshots.topic '{topic}' has {counted(found, 'partition')}, but source.topic "
                f"has {partitions}; it must have as many."
                f"{added if found < partitions else ''} Copy the configuration, with a new "
                f"source.group and a new snapshots.topic: 'streamduel repair repartition COPY "
                f"--from CONFIG' moves the experiments there with their state, and 'streamduel "
                f"run COPY' alone begins without it."
            )
        self._require_compacted(topic, "the snapshots in it would be deleted by age")
        return found

    def _require(self, topic: str, setting: str, new: New | None, *operations: str) -> Found:
        try:
            found = self._admin.find(topic) or self._created(topic, setting, new)
        except errors.KafkaError as error:
            # Each right includes Describe.
            first = (*operations, "Describe")[0]
            refused = self._rights.refused(error, first, topic, setting)
            raise refused or self._unusable(error) from error
        for operation in missing(operations, found.rights):
            raise self._rights.lacks(operation, "topic", topic, setting)
        self.leaderless[topic] = [TopicPartition(topic, it) for it in found.leaderless]
        self._found[topic] = found
        return found

    def _created(self, topic: str, setting: str, new: New | None) -> Found:
        """Create a topic, and wait until the broker that is asked knows it."""
        if not self._cluster.create_topics:
            raise MissingError(
                f"{setting} '{topic}' does not exist; create it, or set source.create_topics to "
                "true.",
                created_by_run=False,
            )
        if new is None:
            raise MissingError(
                f"{setting} '{topic}' does not exist yet; start 'streamduel run' first, which "
                "creates it.",
                created_by_run=True,
            )
        self._create(topic, new)
        deadline = time.monotonic() + CREATE_SECONDS
        while True:
            try:
                if found := self._admin.find(topic):
                    return found
            except errors.KafkaError as error:
                if not error.retriable:
                    raise
            if time.monotonic() > deadline:
                raise ConnectorError(
                    f"{setting} '{topic}' was created, but after {CREATE_SECONDS:.0f} s not every "
                    "broker knows it; check the brokers, and start again."
                )
            time.sleep(PAUSE_SECONDS)

    def _create(self, topic: str, new: New) -> None:
        replicas = self._cluster.replication_factor
        try:
            self._admin.create(topic, new.partitions, replicas, new.configs)
        except errors.TopicAlreadyExistsError:
            pass  # another instance has created it
        except (
            errors.TopicAuthorizationFailedError,
            errors.ClusterAuthorizationFailedError,
        ) as error:
            raise self._rights.lacks("Create", "topic", topic) from error
        except errors.BrokerResponseError as error:
            # Its text is the whole request; its class shows what is wrong.
            raise ConnectorError(
                f"topic '{topic}' could not be created with {new.partitions} partitions and "
                f"replication factor {replicas} (-1: the brokers' "
                f"default): {type(error).__name__}."
            ) from error
        self._admin.await_topic(topic, CREATE_SECONDS)
        log.info("topic created", topic=topic, partitions=new.partitions)

    def _refuse_compacted(self, topic: str, setting: str, policy: str, why: str) -> None:
        """Raise the reason, which introduces the command that changes the policy."""
        if "compact" in policy:
            servers = ",".join(self._cluster.bootstrap_servers)
            raise ConnectorError(
                f"{setting} '{topic}' has cleanup.policy={policy}; it must be delete, because "
                f"{why}: kafka-configs.sh --bootstrap-server {servers} --alter --entity-type "
                f"topics --entity-name {topic} --add-config cleanup.policy=delete."
            )

    def _require_compacted(self, topic: str, why: str) -> None:
        found = self._configs(topic, "compact")
        if found is not None and found["cleanup.policy"] != "compact":
            raise ConnectorError(
                f"topic '{topic}' has cleanup.policy={found['cleanup.policy']}; it must be "
                f"compact: {why}."
            )

    def _configs(self, topic: str, policy: str) -> dict[str, str] | None:
        """The settings of a topic; None for a user without DescribeConfigs.

        Such a user is told which cleanup policy the topic must have.
        """
        try:
            found = self._configs_of_new(topic)
        except errors.KafkaError as error:
            raise self._unusable(error) from error
        if found is None:
            log.warning(
                "cleanup policy unknown", topic=topic,
                advice=f"this user lacks DescribeConfigs; make sure that it is {policy}",
            )  # fmt: skip
        else:
            self.accepted[topic] = max(1, int(found["max.message.bytes"]))
            if refusing := refusing_writes(topic, self._found.get(topic), found):
                self.refusing[topic] = refusing
        return found

    def _configs_of_new(self, topic: str) -> dict[str, str] | None:
        """The settings of a topic that may be so new that the broker that is asked lacks it."""
        deadline = time.monotonic() + CREATE_SECONDS
        while True:
            try:
                return self._admin.configs(topic)
            except errors.UnknownTopicOrPartitionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(PAUSE_SECONDS)

    def _unusable(self, error: errors.KafkaError) -> ConnectorError:
        if error.retriable:
            return unreachable(self._settings, errors.KafkaTimeoutError(reason(error)))
        return unreachable(self._settings, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()
