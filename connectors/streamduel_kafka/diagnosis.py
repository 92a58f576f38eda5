"""Checks of the cluster and its topics, for `streamduel doctor`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeVar

from kafka import TopicPartition, errors

from streamduel.diagnosis import CommittedOffset, Diagnosis, Finding
from streamduel.errors import ConnectorError, MissingError, counted
from streamduel.kafka_codecs import CODECS, BrokenError, decompressed
from streamduel.kafka_rights import Rights
from streamduel_kafka.archive import READER
from streamduel_kafka.client import no_leader
from streamduel_kafka.connecting import LIMITS, UnreachableError, connect_at_start, reason
from streamduel_kafka.group import REACH_SECONDS, group_admin
from streamduel_kafka.instance import likely_name, transactional_id
from streamduel_kafka.kafka_python.admin import PythonAdmin
from streamduel_kafka.obstacle import NO_COORDINATOR
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings
from streamduel_kafka.topics import BOUND_IT, Topics

COORDINATOR_SECONDS: Final = 10.0
"""Timeout of requests to a coordinator: its topic is created at the first request."""

PAUSE_SECONDS: Final = 0.2
"""The time between two such requests."""

READ_SECONDS: Final = 5.0
"""Timeout of reading other topics."""

RECORD_BYTES: Final = 1_000_000
"""A dead letter has up to as many, and every topic accepts them unless someone lowers its limit."""

Answer = TypeVar("Answer")

OTHER_TOPICS: Final = 50
OTHER_PARTITIONS: Final = 200
"""The most other topics, and the most partitions of them, that are read."""

NEWEST: Final = 3
"""The newest records of each partition of another topic that are read."""


def diagnose(source: SourceSettings, sink: SinkSettings, snapshots: SnapshotSettings) -> Diagnosis:
    """Check cluster, topics, rights, group and codecs; look into topics that are not configured."""
    creates = source.create_topics
    never = {"create_topics": False}
    source, sink = source.model_copy(update=never), sink.model_copy(update=never)
    snapshots = snapshots.model_copy(update=never)
    missing: dict[str, str] = {}
    try:
        with Topics(source, REACH_SECONDS) as topics:
            found = [*_topics(topics, source, sink, snapshots, missing if creates else None)]
            found += _bounds(topics, sink, snapshots)
    except ConnectorError as error:
        return Diagnosis([Finding("broker", "failed", str(error))], reachable=False)
    servers = ",".join(source.bootstrap_servers)
    findings = [Finding("broker", "fine", f"Kafka answers at {servers}."), *found, *_codecs()]
    elsewhere: Mapping[str, Sequence[bytes]] = {}
    committed: Mapping[int, CommittedOffset] = {}
    try:
        admin = group_admin(source)
        try:
            group, members = _group(admin, source)
            if members:
                findings = [_deleted(it, missing) for it in findings]
            findings.append(group)
            committed = _committed(admin, source)
            findings.append(_transactions(admin, source))
            findings.append(_timeouts(admin, source, sink))
            named = {source.topic, source.control_topic, sink.assignments, sink.dead_letters}
            others = admin.topics() - named - {snapshots.topic}
        finally:
            admin.close()
        similar = by_similarity(source.topic, [it for it in others if not it.startswith("_")])
        if len(similar) > OTHER_TOPICS:
            findings.append(
                Finding(
                    "other topics", "unknown",
                    f"of {len(similar):,} other topics, {OTHER_TOPICS} are looked into, those with "
                    f"names like '{source.topic}' first.",
                )
            )  # fmt: skip
        elsewhere, lost = _elsewhere(source, similar)
        if lost:
            sentence = f"not looked into: {no_leader(lost)}."
            findings.append(Finding("other topics", "unknown", sentence))
    except (errors.KafkaError, ConnectorError, OSError, RuntimeError) as error:
        findings.append(Finding("other topics", "unknown", f"not looked into: {reason(error)}."))
    return Diagnosis(findings, elsewhere, committed)


def _topics(
    topics: Topics,
    source: SourceSettings,
    sink: SinkSettings,
    snapshots: SnapshotSettings,
    missing: dict[str, str] | None,
) -> Iterator[Finding]:
    """One finding for each topic: existence, rights, partitions and clean-up policy.

    Args:
        topics: asks the broker.
        source: which topics.
        sink: which topics.
        snapshots: which topics.
        missing: gets the topics that `streamduel run` creates, by setting; None if it creates none.
    """
    partitions: int | None = None

    def log() -> str:
        nonlocal partitions
        partitions = topics.require_log(source.topic, None).partitions
        if source.control_topic is not None:
            topics.require_log(source.topic, None, "Write")
        topics.require_every_record(source.topic)
        return f"has {counted(partitions, 'partition')} and can be read"

    def control() -> str:
        found = topics.require_control(str(source.control_topic), partitions, create=False)
        return f"has {counted(found.partitions, 'partition')} and can be read"

    def assignments() -> str:
        topics.require_assignments(sink.assignments)
        return "is compacted and can be written"

    def dead_letters() -> str:
        topics.require_dead_letters(sink.dead_letters)
        return "can be written"

    def state() -> str:
        found = topics.require_snapshots(snapshots.topic, partitions)
        return f"is compacted, has {counted(found, 'partition')} and can be read"

    checks = [
        ("source.topic", source.topic, log),
        ("source.control_topic", source.control_topic, control),
        ("sink.assignments", sink.assignments, assignments),
        ("sink.dead_letters", sink.dead_letters, dead_letters),
        ("snapshots.topic", snapshots.topic, state),
    ]
    for name, topic, check in checks:
        if topic is not None:
            tried = _tried(name, topic, check, missing)
            if tried.verdict == "fine":
                yield _unusable(name, topics, topic) or tried
            else:
                yield tried


def _bounds(topics: Topics, sink: SinkSettings, snapshots: SnapshotSettings) -> Iterator[Finding]:
    """Topics whose batches are not bounded, or that do not accept every record."""
    for topic, compression in topics.unbounded.items():
        yield Finding(
            "decompression", "warning",
            f"'{topic}' has compression.type={compression}: with source.client confluent, small "
            f"batches can exhaust the memory; {BOUND_IT}.",
        )  # fmt: skip
    for topic in (sink.assignments, sink.dead_letters, snapshots.topic):
        accepted = topics.accepted.get(topic, RECORD_BYTES)
        if accepted < RECORD_BYTES:
            yield Finding(
                "record size", "warning",
                f"'{topic}' has max.message.bytes={accepted}, and `streamduel run` ends where a "
                f"record is larger; set at least {RECORD_BYTES}.",
            )  # fmt: skip


def _tried(
    name: str, topic: str, check: Callable[[], str], missing: dict[str, str] | None
) -> Finding:
    try:
        return Finding(name, "fine", f"'{topic}' {check()}.")
    except MissingError as error:
        if missing is None:
            return Finding(name, "failed", str(error))
        missing[name] = topic
        return Finding(name, "fine", f"'{topic}' does not exist yet; `streamduel run` creates it.")
    except UnreachableError:
        raise  # the other topics would only take as long again
    except ConnectorError as error:
        return Finding(name, "failed", str(error))


def _unusable(name: str, topics: Topics, topic: str) -> Finding | None:
    """That partitions have no leader or too few in-sync replicas."""
    if lost := topics.leaderless.get(topic):
        return Finding(
            name, "failed",
            f"{no_leader(lost)}: nothing is read from it or written to it until a broker with a "
            "replica of it is back (kafka-topics.sh --describe --unavailable-partitions).",
        )  # fmt: skip
    if refusing := topics.refusing.get(topic):
        return Finding(
            name, "failed",
            f"{refusing}: nothing can be written there until a broker with another replica is back "
            "(kafka-topics.sh --describe --under-min-isr-partitions), and no transaction ends that "
            "has written there.",
        )  # fmt: skip
    return None


def _deleted(finding: Finding, missing: Mapping[str, str]) -> Finding:
    """The finding about a topic, where processes run that created or read it at their start."""
    topic = missing.get(finding.name)
    if topic is None:
        return finding
    found = f"'{topic}' does not exist, although processes run: it was deleted."
    if not finding.name.startswith("source."):
        found += " Restart them: `streamduel run` creates it at its start."
    return finding._replace(verdict="failed", sentence=found)


def _codecs() -> Iterator[Finding]:
    missing = []
    for number, (name, _) in CODECS.items():
        try:
            decompressed(number, b"\xff", 1)
        except BrokenError:
            pass
        except errors.UnsupportedCodecError as error:
            missing.append(f"{name} ({reason(error)})")
    if missing:
        found = f"batches cannot be read in {', '.join(missing)}; install streamduel[kafka]."
        yield Finding("codecs", "warning", found)
    else:
        names = ", ".join(name for name, _ in CODECS.values())
        yield Finding("codecs", "fine", f"batches can be read in {names}.")


def _answer(ask: Callable[[], Answer]) -> Answer:
    """The answer, once the coordinator knows it: on a new cluster, that takes some seconds."""
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            return ask()
        except errors.KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def _group(admin: PythonAdmin, source: SourceSettings) -> tuple[Finding, int]:
    """Whether processes read the click log, and how many."""
    name, group = "source.group", source.group
    try:
        members = len(_answer(lambda: admin.members(group)))
    except errors.GroupAuthorizationFailedError as error:
        refusal = Rights(source.client_settings, group).refused(error, "Read")
        return Finding(name, "failed", str(refusal)), 0
    except ConnectorError as error:
        return Finding(name, "failed", str(error)), 0
    except errors.KafkaError as error:
        found = f"'{group}' cannot be described: {reason(error)}."
        return Finding(name, "unknown", found), 0
    if members == 0:
        found = f"no process is in the group '{group}': nothing reads the click log at present."
        return Finding(name, "warning", found), 0
    found = (
        f"{'1 process' if members == 1 else f'{members} processes'} of the group '{group}' "
        f"{'reads' if members == 1 else 'read'} the click log; one that has stopped counts until "
        "its session times out."
    )
    return Finding(name, "fine", found), members


def _committed(admin: PythonAdmin, source: SourceSettings) -> dict[int, CommittedOffset]:
    """Where the group continues; a commit of the service writes a number beside each offset."""
    try:
        found = _answer(lambda: admin.committed(source.group, source.topic))
    except errors.KafkaError:
        return {}  # `_group` has the reason
    return {
        partition: CommittedOffset(it.offset, it.metadata.isdecimal())
        for partition, it in found.items()
    }


def _transactions(admin: PythonAdmin, source: SourceSettings) -> Finding:
    """Whether a process on this host may see its transactions, and so perhaps write them.

    Beginning a transaction would abort that of a running process.
    """
    name = "transactions"
    own = transactional_id(source.group, likely_name(source.instance))
    try:
        _answer(lambda: admin.find_transactions(own))
    except errors.TransactionalIdAuthorizationFailedError as error:
        rights = Rights(source.client_settings, transactional_id=own)
        return Finding(name, "failed", str(rights.refused(error, "Write")))
    except errors.CoordinatorNotAvailableError:
        return Finding(name, "failed", f"{NO_COORDINATOR}.")
    except errors.KafkaError as error:
        return Finding(name, "unknown", f"'{own}' is not found: {reason(error)}.")
    return Finding(name, "fine", f"those of '{own}' can be found.")


def _timeouts(admin: PythonAdmin, source: SourceSettings, sink: SinkSettings) -> Finding:
    """Whether a broker accepts the timeouts: `streamduel run` ends where it refuses one."""
    name = "timeouts"
    least, most = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
    longest = "transaction.max.timeout.ms"
    try:
        limits = {
            key: int(value) for key, value in admin.broker_configs(least, most, longest).items()
        }
    except errors.KafkaError as error:
        return Finding(
            name, "unknown", f"the limits of the brokers are not known: {reason(error)}."
        )
    if not {least, most, longest} <= limits.keys():
        found = (
            "the limits of the brokers for source.session_timeout_ms and "
            "sink.transaction_timeout_ms are not known: this user lacks DescribeConfigs on the "
            "cluster."
        )
        return Finding(name, "unknown", found)
    session, transaction = source.session_timeout_ms, sink.transaction_timeout_ms
    refused = []
    if not limits[least] <= session <= limits[most]:
        allowed = f"{limits[least]} to {limits[most]}"
        refused.append(f"{LIMITS['InvalidSessionTimeoutError']}, {allowed} (found {session})")
    if transaction > limits[longest]:
        allowed = f"{limits[longest]} (found {transaction})"
        refused.append(f"{LIMITS['InvalidTransactionTimeoutError']}, {allowed}")
    if refused:
        return Finding(name, "failed", f"{'; '.join(refused)}.")
    return Finding(
        name, "fine", "those of sessions and transactions are within the brokers' limits."
    )


def by_similarity(name: str, topics: Iterable[str]) -> list[str]:
    """Topics with the most similar names first: a wrong topic is mostly a misspelled name.

    >>> by_similarity("clicks", ["orders", "click", "clicks-v1"])
    ['click', 'clicks-v1', 'orders']
    """
    matcher = SequenceMatcher(b=name, autojunk=False)

    def likeness(topic: str) -> float:
        matcher.set_seq1(topic)
        return matcher.ratio()

    return sorted(topics, key=lambda topic: (-likeness(topic), topic))


def _elsewhere(
    source: SourceSettings, topics: Sequence[str]
) -> tuple[dict[str, list[bytes]], list[TopicPartition]]:
    """The newest values of topics that are not configured, and partitions without a leader."""
    found: dict[str, list[bytes]] = {}
    # Whoever writes there is not known, and only kafka-python bounds the decompression.
    settings = {**source.client_settings, "client": "kafka-python"}
    consumer = connect_at_start(READER, settings, REACH_SECONDS)
    try:
        places = [
            TopicPartition(topic, number)
            for topic in topics[:OTHER_TOPICS]
            for number in consumer.partitions(topic, READ_SECONDS)
        ][:OTHER_PARTITIONS]
        ends = consumer.stable_ends(places, READ_SECONDS)
        begins = consumer.begins(places, READ_SECONDS)
        lost = [at for at in places if at not in ends or at not in begins]
        left = {at for at in places if at not in lost and ends[at] > begins[at]}
        consumer.assign({at: max(begins[at], ends[at] - NEWEST) for at in sorted(left)})
        deadline = time.monotonic() + READ_SECONDS
        while left and time.monotonic() < deadline:
            for at, records in consumer.poll(0.1).items():
                values = [it.value for it in records if isinstance(it.value, bytes)]
                found.setdefault(at.topic, []).extend(values[:NEWEST])
                left.discard(at)
    finally:
        consumer.close()
    return found, lost
