"""The consumer group, for a process that must be its only member."""

from __future__ import annotations

import contextlib
import time
from contextlib import closing
from typing import Final

import structlog
from kafka import errors

from streamduel.errors import ConnectorError, counted
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import AdminOptions
from streamduel_kafka.connecting import reason
from streamduel_kafka.kafka_python.admin import PythonAdmin, open_admin
from streamduel_kafka.settings import Cluster, SourceSettings

log = structlog.stdlib.get_logger(__name__)

REACH_SECONDS: Final = 5.0
"""Timeout of a connection: a running cluster answers within a second."""

PAUSE_SECONDS: Final = 0.5
"""The time between two looks at the members."""


def group_admin(cluster: Cluster) -> PythonAdmin:
    """A client that can describe groups and transactions: kafka-python, whichever is configured.

    librdkafka cannot describe transactions.
    """
    settings = {key: value for key, value in cluster.client_settings.items() if key != "client"}
    return open_admin(settings, AdminOptions(), REACH_SECONDS)


def await_alone(source: SourceSettings, instance: str, seconds: float) -> None:
    """Wait until the group has no member of another name.

    To join it would take partitions away from a process that runs.

    Raises:
        ConnectorError: it still has one after this time, or cannot be described; or another program
            is in it.
    """
    deadline = time.monotonic() + seconds
    try:
        with closing(group_admin(source)) as admin:
            while others := admin.members(source.group).keys() - {instance}:
                if time.monotonic() > deadline:
                    raise ConnectorError(
                        f"another process owns partitions of '{source.topic}': the group "
                        f"'{source.group}' has {counted(len(others), 'other member')}, such as "
                        f"'{min(others)}'; stop all processes of the service first."
                    )
                time.sleep(PAUSE_SECONDS)
    except errors.KafkaError as error:
        refused = Rights(source.client_settings, source.group).refused(error, "Read")
        raise refused or ConnectorError(
            f"the group '{source.group}' cannot be described: {reason(error)}."
        ) from error


def leave_unassigned(source: SourceSettings, instance: str) -> None:
    """Let this process join again, if no member of the group has a partition.

    A static member that starts again within its session gets the assignment that it had before, and
    with kafka-python nothing but that: none, if the topic had been deleted, although it is there
    again.
    """
    ignored = (errors.KafkaError, ConnectorError, OSError)
    with contextlib.suppress(*ignored), closing(group_admin(source)) as admin:
        if not any(admin.members(source.group).values()):
            log.warning("joining again", group=source.group, advice="no member has partitions")
            admin.remove_member(source.group, instance)


def leave(source: SourceSettings, instance: str) -> None:
    """Remove a member that has ended; otherwise it keeps its partitions until its session ends."""
    try:
        with closing(group_admin(source)) as admin:
            admin.remove_member(source.group, instance)
    except (errors.KafkaError, OSError) as error:
        log.warning(
            "group not left", group=source.group, instance=instance, error=reason(error),
            advice="other processes get its partitions when its session has timed out",
        )  # fmt: skip
