"""The admin client of kafka-python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaAdminClient, errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove

from streamduel.errors import ConnectorError
from streamduel_kafka.client import AdminOptions, Committed, Found
from streamduel_kafka.kafka_python.opening import opened
from streamduel_kafka.kafka_python.private import a_broker, shown_topic_id


class PythonAdmin:
    """See `streamduel_kafka.client.Admin`."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def find(self, topic: str) -> Found | None:
        """See the protocol."""
        found = self._admin.describe_topics([topic])[0]
        kind = errors.for_code(found["error_code"])
        if kind is errors.UnknownTopicOrPartitionError:
            return None
        if kind is not errors.NoError:
            raise kind()
        identity = shown_topic_id(found.get("topic_id"))
        partitions = found["partitions"]
        leaderless = [it["partition_index"] for it in partitions if it["leader_id"] == -1]
        under_replicated = {
            it["partition_index"]: len(it["isr_nodes"])
            for it in partitions
            if len(it["isr_nodes"]) < len(it["replica_nodes"])
        }
        rights = found.get("authorized_operations")
        return Found(len(partitions), identity, rights, leaderless, under_replicated)

    def create(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """See the protocol."""
        described = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(configs),
        }
        self._admin.create_topics({topic: described})

    def await_topic(self, topic: str, seconds: float) -> None:
        """See the protocol."""
        self._admin.wait_for_topics([topic], timeout_ms=int(1000 * seconds))

    def configs(self, topic: str) -> dict[str, str] | None:
        """See the protocol."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        try:
            found = self._admin.describe_configs([resource], config_filter="all")
        except errors.TopicAuthorizationFailedError:
            return None
        entries = found.get("topic", {}).get(topic, {})  # empty without the right
        return {name: entry["value"] for name, entry in entries.items()} or None

    def broker_configs(self, *names: str) -> dict[str, str]:
        """These settings of a broker; without the right to see them, none.

        Raises:
            KafkaError: the brokers do not know.
        """
        broker = str(a_broker(self._admin))
        resource = ConfigResource(ConfigResourceType.BROKER, broker, dict.fromkeys(names))
        found = self._admin.describe_configs([resource], config_filter="all")
        entries = found.get("broker", {}).get(broker, {})
        values = {name: entries[name]["value"] for name in names if name in entries}
        return {name: value for name, value in values.items() if value is not None}

    def members(self, group: str) -> dict[str, bool]:
        """The members of a group by instance id, or else member id; whether each has partitions.

        Raises:
            ConnectorError: it has members that the client cannot describe.
            KafkaError: the brokers do not know, or refuse.
        """
        found = self._admin.describe_groups([group])[group]
        if found["error"] is None:
            return {
                it["group_instance_id"] or it["member_id"]: _has_partitions(it["member_assignment"])
                for it in found["members"]
            }
        # The client gives a text, such as "[Error 16] NotCoordinatorError: ".
        kind = errors.for_code(int(re.findall(r"-?\d+", found["error"])[0]))
        if kind is errors.GroupIdNotFoundError:
            self._refuse_other_protocols(group)
            return {}
        raise kind()

    def _refuse_other_protocols(self, group: str) -> None:
        """Raise an error if a group that is not found as a classic one is of another kind.

        One member with another protocol makes it so, whatever the others have.
        """
        for it in self._admin.list_groups():
            kind = it.get("group_type") or "classic"
            if it["group_id"] == group and kind != "classic" and it["group_state"] != "Empty":
                raise ConnectorError(
                    f"the group '{group}' has members of another program, with "
                    f"group.protocol={kind}; give that program a group of its own."
                )

    def committed(self, group: str, topic: str) -> dict[int, Committed]:
        """The offsets of a topic that a group has committed, by partition.

        Raises:
            KafkaError: the brokers do not know, or refuse.
        """
        found = self._admin.list_group_offsets(group)[group]
        return {
            at.partition: Committed(it.offset, it.metadata.rstrip("\0"))
            for at, it in found.items()
            if at.topic == topic
        }

    def remove_member(self, group: str, instance: str) -> None:
        """Remove the member of an instance id from a group, if there is one.

        Raises:
            KafkaError: the brokers refuse.
        """
        self._admin.remove_group_members(group, [MemberToRemove(group_instance_id=instance)])

    def find_transactions(self, transactional_id: str) -> None:
        """Ask for the transactions of an id.

        Raises:
            TransactionalIdAuthorizationFailedError: without the right to see them.
            KafkaError: the brokers do not know.
        """
        with suppress(errors.TransactionalIdNotFoundError):
            self._admin.describe_transactions([transactional_id])

    def topics(self) -> set[str]:
        """See the protocol."""
        return set(self._admin.list_topics())

    def close(self) -> None:
        """See the protocol."""
        self._admin.close()


def _has_partitions(assignment: Any) -> bool:
    """Whether a member's assignment, as far as the client could decode it, has a partition."""
    if not isinstance(assignment, dict):
        return bool(assignment)
    return any(it["partitions"] for it in assignment["assigned_partitions"])


def open_admin(settings: Mapping[str, Any], options: AdminOptions, seconds: float) -> PythonAdmin:
    """Connect an admin client, within this time."""
    return PythonAdmin(opened(KafkaAdminClient, settings, seconds, client_id=options.client_id))
