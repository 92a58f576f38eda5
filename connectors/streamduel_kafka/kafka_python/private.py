"""The private parts of kafka-python that only this connector uses; nothing else here touches any.

Those that ranker services need, too, are in `streamduel.kafka_clients` and `kafka_batches`. Written
for kafka-python 3.0.12. Each function names the upstream defect that makes it necessary; when a
release fixes one, delete the function. Check all of them before another major version is allowed in
`pyproject.toml`.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import TopicPartition, errors
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from streamduel_kafka.client import Found, no_leader

NO_ID = uuid.UUID(int=0)

ANSWER_SECONDS = 3.0
"""Answers take milliseconds, a fetch without records `fetch_max_wait_ms`; on a slow network, a
second. With the time between two heartbeats this must stay below the 5 s within which an absent
broker makes a process not ready."""

REGULAR_SECONDS = 20.0
"""Above the timeout of every request but that of joining a group."""


def connected(consumer: Any) -> bool:
    """Whether a consumer reaches a broker that answers, and the leaders of its partitions do.

    Makes no request; may be called from any thread. A connection that the broker closes or loses is
    noticed at once, a broker that stops answering after `ANSWER_SECONDS`: a fetch is always in
    flight, and without partitions a heartbeat after at most `HEARTBEAT_MS`.

    Defect: no public method shows it. `bootstrap_connected` is true only during the bootstrap, and
    the metric `connection-count` counts attempts, too.
    """
    client = consumer._client
    known = client._manager._conns
    if not any(_answers(known, broker.node_id) for broker in client.cluster.brokers()):
        return False
    assigned = tuple(consumer.assignment() or ())
    leaders = {client.cluster.leader_for_partition(each) for each in assigned}
    return not any(_overdue(known.get(leader)) for leader in leaders)


def _answers(connections: Mapping[Any, Any], broker: int) -> bool:
    found = (connections.get(name) for name in (broker, f"coordinator-{broker}"))
    open_ones = [each for each in found if each is not None and each.connected]
    return bool(open_ones) and not any(map(_overdue, open_ones))


def _overdue(connection: Any) -> bool:
    """Whether nothing arrives on a connection although an answer is due."""
    try:
        _, _, sent, deadline, _ = connection.in_flight_requests[0]
        last_read = connection.transport.last_read
    except (IndexError, AttributeError):  # no request is open, or no connection
        return False
    # Joining a group takes as long as its other members need, and has a longer timeout.
    if deadline - sent > REGULAR_SECONDS:
        return False
    silent: float = time.monotonic() - max(sent, last_read)
    return silent > ANSWER_SECONDS


def drop_fetched(consumer: Any, at: TopicPartition) -> None:
    """Forget the rest of a fetch that was put aside because its partition was paused.

    Defect: `resume` takes it back only while the client holds no other fetch, used up ones
    included. If it does, the partition is never fetched again: it counts as one that has records.
    """
    fetcher = consumer._fetcher
    fetcher._paused_completed_fetches.pop(at, None)
    if (rest := fetcher._paused_partition_records.pop(at, None)) is not None:
        rest.drain()


def known(consumer: Any, topic: str) -> Found | None:
    """A topic by the consumer's newest metadata; None while it is missing.

    Makes no request.

    Defect: no public method returns the id. The consumer itself only logs that it has changed, and
    continues reading at its old position; and of the number of partitions only the leader of a
    group takes note.
    """
    cluster = consumer._client.cluster
    partitions = cluster.partitions_for_topic(topic)
    if not partitions:
        return None
    leaderless = sorted(partitions - cluster.available_partitions_for_topic(topic))
    identity = shown_topic_id(cluster.topic_id(topic))
    return Found(len(partitions), identity, leaderless=leaderless)


def ask_topics(consumer: Any) -> Any:
    """Ask a broker for the consumer's topics, and do not wait for the answer.

    Defect: no public method asks for one topic. The consumer's own refresh of its metadata asks one
    broker at a time, and waits for `request_timeout_ms` if that one does not answer.
    """
    client = consumer._client

    async def ask() -> Any:
        return await client._manager.send(client.cluster.metadata_request())

    return client._manager.call_soon(ask)


def await_answer(consumer: Any, topic: str, asked: Any, seconds: float) -> Found | None:
    """A topic by the answer to `ask_topics`; None while it is missing.

    Raises:
        KafkaError: no answer in time.
    """
    client = consumer._client
    answer = client._net.run(client._manager.wait_for, asked, int(1000 * seconds))
    return next(
        (
            Found(
                len(each.partitions),
                shown_topic_id(each.topic_id),
                leaderless=[it.partition_index for it in each.partitions if it.leader_id == -1],
            )
            for each in answer.topics
            if each.name == topic and not each.error_code
        ),
        None,
    )


def shown_topic_id(found: uuid.UUID | str | None) -> str | None:
    """A topic id as `kafka-topics.sh --describe` shows it; None for the one that means none.

    >>> shown_topic_id("8d6f3f8c-6bd2-4b8e-8cbf-5f7a2f2f3d55")
    'jW8_jGvSS46Mv196Ly89VQ'
    """
    number = uuid.UUID(str(found)) if found else NO_ID
    return None if number == NO_ID else base64.urlsafe_b64encode(number.bytes).rstrip(b"=").decode()


def a_broker(admin: Any) -> int:
    """The id of a broker, by the newest metadata of an admin client.

    Defect: `describe_cluster` ends with a KeyError on brokers before Kafka 3.7.

    Raises:
        BrokerNotAvailableError: none is known.
    """
    known = admin._manager.cluster.brokers()
    if not known:
        raise errors.BrokerNotAvailableError
    return int(known[0].node_id)


def offsets(
    consumer: Any,
    partitions: Sequence[TopicPartition],
    which: OffsetSpec,
    seconds: float,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[TopicPartition, int]:
    """Offsets of partitions; without those that have no leader.

    Defects of `KafkaConsumer.beginning_offsets` and `end_offsets`:
    - They have no isolation level. They use that of the consumer, and with "read_committed" the
      ends are last stable offsets.
    - If some of the partitions have no leader, they end with a KeyError.

    Raises:
        LeaderNotAvailableError: none has a leader.
        KafkaError: no answer in time.
    """
    fetcher = copy.copy(consumer._fetcher)
    fetcher._isolation_level = isolation
    asked, milliseconds = dict.fromkeys(partitions, which), int(1000 * seconds)
    try:
        found = fetcher._net.run(fetcher._fetch_offsets_by_times_async, asked, milliseconds)
    except errors.KafkaTimeoutError as error:
        leader = consumer._client.cluster.leader_for_partition
        if lost := [at for at in partitions if leader(at) == -1]:
            raise errors.LeaderNotAvailableError(no_leader(lost)) from error
        raise
    return {at: int(each.offset) for at, each in found.items()}


def displaced(consumer: Any) -> bool:
    """Whether another member of the same `group_instance_id` has replaced this one in the group.

    Defect: a heartbeat that is refused with FencedInstanceIdError is only logged. The heartbeats
    stop, and the consumer continues reading. In a stable member that is not about to rejoin nothing
    else stops them.
    """
    coordinator = consumer._coordinator
    return coordinator.stable() and not coordinator.rejoining and not coordinator._heartbeat_enabled


class _Joining:
    """The open request of a member to join a group, for `continue_joining`.

    It counts as open until its answer is taken, unless it failed: then the next poll sends another.
    """

    def __init__(self, request: Any) -> None:
        self._request = request
        self.add_callback = request.add_callback
        self.add_errback = request.add_errback

    @property
    def is_done(self) -> bool:
        """Whether a new request is needed."""
        return bool(self._request.failed())


def continue_joining(consumer: Any) -> None:
    """Let the next poll finish a rebalance that this member has begun.

    Defects, both of an answer that arrives after the timeout of the poll that asked:
    - The next poll does not take it, but joins again. A leader that does so makes all members join
      again; where polls are shorter than the answer takes, the group never has an assignment.
    - If the rebalance began because the topic has more partitions, no later poll takes it: the
      member stays in the group without partitions, permanently.
    """
    coordinator = consumer._coordinator
    if coordinator.rejoining:
        coordinator.request_rejoin()
        request = coordinator._join_task
        if request is not None and not isinstance(request, _Joining):
            coordinator._join_task = _Joining(request)


def unsent(record: Any) -> bool:
    """Whether a record failed before it was sent, because another one failed.

    Defect: it then has the error of the other one.
    """
    answer = record._produce_future.value
    return answer is not None and answer[0] == -1  # in place of an offset; None if it was refused


def send_offsets(
    producer: Any, offsets: Mapping[TopicPartition, Any], group: Any, seconds: float
) -> None:
    """`KafkaProducer.send_offsets_to_transaction` with a timeout.

    Defect: that method, and the two below, wait without limit. While the broker is down the
    process could not even stop on SIGTERM.

    Raises:
        KafkaError: refused, or not answered in time.
    """
    manager = producer._transaction_manager
    _wait(producer, manager.send_offsets_to_transaction(dict(offsets), group), seconds)


def commit_transaction(producer: Any, seconds: float) -> None:
    """`KafkaProducer.commit_transaction` with a timeout; see `send_offsets`."""
    _wait(producer, producer._transaction_manager.begin_commit(), seconds)


def abort_transaction(producer: Any, seconds: float) -> None:
    """`KafkaProducer.abort_transaction` with a timeout; see `send_offsets`.

    Does not raise: there may be nothing to abort, and the broker aborts after a timeout anyway.
    """
    with contextlib.suppress(errors.KafkaError):
        _wait(producer, producer._transaction_manager.begin_abort(), seconds)


def _wait(producer: Any, result: Any, seconds: float) -> None:
    producer._sender.wakeup()
    if not result.wait(timeout_ms=1000 * max(0.0, seconds)):
        raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")
