"""The admin client of confluent-kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    IsolationLevel,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec
from kafka import TopicPartition, errors

from streamduel_kafka.client import AdminOptions, Found, no_leader
from streamduel_kafka.confluent.failures import translated, translating
from streamduel_kafka.confluent.opening import NO_TOPIC, Errors, await_cluster, configuration

ASK_SECONDS: Final = 10.0
"""Timeout of a request: a running cluster answers within a second, also while a broker restarts."""

PAUSE_SECONDS: Final = 0.05
"""The time between two checks whether a new topic can be used."""

NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id that brokers before Kafka 2.8 report."""

SHOWN: Final = str.maketrans("+/", "-_")
"""Topic ids as Kafka's tools show them."""


def answer(future: Any, seconds: float) -> Any:
    """The result of a request.

    Raises:
        KafkaError: refused, or not answered in time.
    """
    try:
        return future.result(max(0.0, seconds))
    except KafkaException as error:
        raise translated(error.args[0]) from error
    except TimeoutError:
        raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s") from None


class ConfluentAdmin:
    """See `streamduel_kafka.client.Admin`."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Around a request that a running process repeats.

        librdkafka keeps its reports of lost connections until `poll`: one a second for each broker
        that is away.
        """
        with translating():
            self._admin.poll(0)
            yield

    def ask(self, topic: str, seconds: float = ASK_SECONDS) -> Any:
        """Request a topic, without waiting."""
        with self._asking():
            return self._describe(topic, seconds)

    def _describe(self, topic: str, seconds: float) -> Any:
        asked = self._admin.describe_topics(
            TopicCollection([topic]),
            include_authorized_operations=True,
            request_timeout=max(seconds, 0.001),
        )
        return asked[topic]

    def found(self, asked: Any, seconds: float) -> Found | None:
        """The answer to `ask`; None if there is no such topic."""
        try:
            described = answer(asked, seconds)
        except errors.UnknownTopicOrPartitionError:
            return None
        identity = str(described.topic_id).rstrip("=").translate(SHOWN)
        rights = described.authorized_operations
        return Found(
            len(described.partitions),
            None if identity == NO_ID else identity,
            None if rights is None else [each.name for each in rights],
            [each.id for each in described.partitions if each.leader is None],
            {
                each.id: len(each.isr)
                for each in described.partitions
                if len(each.isr) < len(each.replicas)
            },
        )

    def find(self, topic: str) -> Found | None:
        """See the protocol."""
        return self.found(self.ask(topic), ASK_SECONDS)

    def create(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """See the protocol."""
        new = NewTopic(topic, partitions, replicas, config=dict(configs))
        with translating():
            created = self._admin.create_topics([new], request_timeout=ASK_SECONDS)
        answer(created[topic], ASK_SECONDS)

    def await_topic(self, topic: str, seconds: float) -> None:
        """See the protocol."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                described = answer(self.ask(topic), ASK_SECONDS)
                if all(each.leader for each in described.partitions):
                    return
            except errors.KafkaError as error:
                if not error.retriable:
                    raise
            if time.monotonic() > deadline:
                raise errors.KafkaTimeoutError(f"topic '{topic}' has no leader")
            time.sleep(PAUSE_SECONDS)

    def configs(self, topic: str) -> dict[str, str] | None:
        """See the protocol."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        with translating():
            asked = self._admin.describe_configs([resource], request_timeout=ASK_SECONDS)
        try:
            found = answer(asked[resource], ASK_SECONDS)
        except errors.TopicAuthorizationFailedError:
            return None
        return {name: entry.value for name, entry in found.items()} or None

    def topics(self) -> set[str]:
        """See the protocol."""
        with translating():
            return set(self._admin.list_topics(timeout=ASK_SECONDS).topics)

    def ping(self) -> Any:
        """Send any request, without waiting."""
        with self._asking():
            return self._admin.describe_cluster(request_timeout=ASK_SECONDS)

    def reach(self, seconds: float) -> None:
        """Send any request, and wait for the answer."""
        with translating():
            self._admin.list_topics(NO_TOPIC, timeout=max(seconds, 0.001))

    def offsets(
        self,
        partitions: Sequence[TopicPartition],
        spec: OffsetSpec,
        seconds: float,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """Offsets of partitions; without those that have no leader.

        If one has none, librdkafka returns the offset of no other, either.
        """
        if not partitions:
            return {}
        deadline = time.monotonic() + seconds
        with self._asking():
            asked = [self._describe(it, seconds) for it in {at.topic for at in partitions}]
        described = [answer(each, deadline - time.monotonic()) for each in asked]
        leaderless = {
            (topic.name, each.id)
            for topic in described
            for each in topic.partitions
            if each.leader is None
        }
        wanted = {Place(*at): spec for at in partitions if at not in leaderless}
        if not wanted:
            raise errors.LeaderNotAvailableError(no_leader(partitions))
        rest = max(deadline - time.monotonic(), 0.001)
        with translating():
            answers = self._admin.list_offsets(
                wanted, isolation_level=isolation, request_timeout=rest
            )
        found = {}
        for place, future in answers.items():
            offset = int(answer(future, deadline - time.monotonic()).offset)
            if offset >= 0:  # else it has lost its leader just now
                found[TopicPartition(place.topic, place.partition)] = offset
        if not found:
            raise errors.LeaderNotAvailableError(no_leader(partitions))
        return {at: found[at] for at in partitions if at in found}

    def close(self) -> None:
        """See the protocol.

        Not left to the garbage collector: it may run in the thread of this client that reports an
        answer, and librdkafka aborts the process when it is ended there.
        """
        self._admin.__exit__(None, None, None)


def open_admin(
    settings: Mapping[str, Any], options: AdminOptions, seconds: float
) -> ConfluentAdmin:
    """Connect an admin client, within this time."""
    heard = Errors()
    made = configuration(settings, heard, **{"client.id": options.client_id})
    with translating():
        client = AdminClient(made)
    await_cluster(client, heard, seconds, lambda: client.poll(0))
    return ConfluentAdmin(client)
