"""Checking and creating topics at start."""

from contextlib import closing
from functools import partialmethod
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from structlog.typing import EventDict

from streamduel.connector import SourceOptions, no_failpoint
from streamduel.errors import ConnectorError
from streamduel_kafka import connector
from streamduel_kafka.client import Found
from streamduel_kafka.confluent.admin import ConfluentAdmin
from streamduel_kafka.kafka_python.admin import PythonAdmin
from streamduel_kafka.topics import BOUNDED
from streamduel_kafka.topics import Topics as Checks
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import Bed, gain

pytestmark = pytest.mark.kafka


def config(bed: Bed, topic: str, which: str = "all") -> dict[str, Any]:
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = admin.describe_configs([resource], config_filter=which)["topic"][topic]
        return {name: entry["value"] for name, entry in found.items()}


def partitions(bed: Bed, topic: str) -> int:
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        return len(admin.describe_topics([topic])[0]["partitions"])


def test_missing_topics_are_created(bed: Bed) -> None:
    for name in ("topic", "assignments", "dead_letters", "snapshots"):
        setattr(bed, name, f"new-{getattr(bed, name)}")
    shared = {"create_topics": True, "replication_factor": 1}
    source = connector.open_source(bed.source_settings(partitions=3, **shared), SourceOptions())
    with closing(source):
        assert source.partitions == partitions(bed, bed.topic) == 3
        connector.open_outlet(
            bed.sink_settings(**shared), bed.snapshot_settings(**shared), source, no_failpoint
        ).close()
    assert partitions(bed, bed.snapshots) == 3
    assert config(bed, bed.topic)["cleanup.policy"] == "delete"
    assert config(bed, bed.topic)["compression.type"] in BOUNDED
    assert config(bed, bed.assignments)["cleanup.policy"] == "compact"
    # Brokers may have another default.
    assert config(bed, bed.dead_letters, "modified")["cleanup.policy"] == "delete"
    assert config(bed, bed.snapshots)["cleanup.policy"] == "compact"
    for topic in (bed.assignments, bed.snapshots):
        assert int(config(bed, topic)["max.message.bytes"]) > 2**20


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"assignments": "absent"}, "sink.assignments 'absent' does not exist; create it, or set"),
        ({"dead_letters": "absent"}, "sink.dead_letters 'absent' does not exist"),
        ({"snapshots": "absent"}, "snapshots.topic 'absent' does not exist"),
    ],
)
def test_a_missing_topic(bed: Bed, change: dict[str, str], problem: str) -> None:
    source = bed.source()
    for name, value in change.items():
        setattr(bed, name, value)
    with pytest.raises(ConnectorError, match=problem):
        bed.outlet(source)


def test_a_missing_click_log(bed: Bed) -> None:
    with pytest.raises(ConnectorError, match=r"source\.topic 'absent' does not exist"):
        bed.source(topic="absent")


def test_a_click_log_for_replay_is_not_created(bed: Bed) -> None:
    bed.topic = "absent-too"
    sooner = r"'absent-too' does not exist yet; start 'streamduel run' first, which creates it\.$"
    with pytest.raises(ConnectorError, match=sooner):
        connector.open_log(bed.source_settings(create_topics=True), SourceOptions())
    with pytest.raises(ConnectorError, match=r"create it, or set source\.create_topics to true\.$"):
        connector.open_log(bed.source_settings(), SourceOptions())


@pytest.mark.parametrize("partitions", [3, 5])
def test_snapshots_need_as_many_partitions_as_the_click_log(
    bed: Bed, topics: Topics, partitions: int
) -> None:
    bed.snapshots = topics(partitions, compacted=True)
    with pytest.raises(
        ConnectorError,
        match=rf"has {partitions} partitions, but source\.topic has 4; .* a new source\.group and "
        r"a new snapshots\.topic: 'streamduel repair repartition COPY --from CONFIG' moves",
    ) as refused:
        bed.outlet(bed.source())
    grown = "If partitions were added to source.topic, stop its producers first" in str(
        refused.value
    )
    assert grown == (partitions < 4)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
@pytest.mark.parametrize("name", ["snapshots", "assignments"])
def test_topics_must_be_compacted(bed: Bed, topics: Topics, name: str, policy: str) -> None:
    setattr(bed, name, topics(4, cleanup_policy=policy))
    with pytest.raises(ConnectorError, match=f"has cleanup.policy={policy}; it must be compact"):
        bed.outlet(bed.source())


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("kind", ["group", "whole"])
def test_a_compacted_click_log_is_refused(bed: Bed, topics: Topics, policy: str, kind: str) -> None:
    bed.topic = topics(4, cleanup_policy=policy)
    with pytest.raises(ConnectorError) as refused:
        bed.source() if kind == "group" else bed.log()
    for text in (
        f"source.topic '{bed.topic}' has cleanup.policy={policy}; it must be delete",
        "those that it has removed are lost, and nothing counts them.",
        f"kafka-configs.sh --bootstrap-server {bed.servers} --alter --entity-type topics "
        f"--entity-name {bed.topic} --add-config cleanup.policy=delete.",
    ):
        assert text in str(refused.value)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_dead_letters_are_refused(bed: Bed, topics: Topics, policy: str) -> None:
    bed.dead_letters = topics(1, cleanup_policy=policy)
    with pytest.raises(ConnectorError) as refused:
        bed.outlet(bed.source())
    assert str(refused.value) == (
        f"sink.dead_letters '{bed.dead_letters}' has cleanup.policy={policy}; it must be delete, "
        "because Kafka refuses records without a key in a compacted topic, and compaction removes "
        "all dead letters with the same key but the last. Change it with: kafka-configs.sh "
        f"--bootstrap-server {bed.servers} --alter --entity-type topics --entity-name "
        f"{bed.dead_letters} --add-config cleanup.policy=delete."
    )


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_the_log_says_where_timestamps_come_from(
    bed: Bed, topics: Topics, kind: str, logged: list[EventDict]
) -> None:
    bed.topic = topics(4, message_timestamp_type=kind)
    bed.source()
    (line,) = [line for line in logged if line["event"] == "click log opened"]
    assert (line["topic"], line["timestamps"]) == (bed.topic, kind)


@pytest.mark.parametrize("codec", ["snappy", "uncompressed"])
def test_bounded_decompression_is_not_told(
    bed: Bed, topics: Topics, codec: str, logged: list[EventDict]
) -> None:
    bed.topic = topics(4, compression_type=codec)
    bed.source(client="confluent")
    assert "decompression not bounded" not in {line["event"] for line in logged}


@pytest.mark.parametrize("codec", ["producer", "zstd"])
def test_unbounded_decompression_is_told_at_start_only(
    bed: Bed, topics: Topics, codec: str, logged: list[EventDict]
) -> None:
    bed.topic = topics(4, compression_type=codec)
    settings = bed.source_settings(client="confluent")
    told = {"topic": bed.topic, "compression": codec}
    for opened, times in ((connector.open_log, 0), (connector.open_source, 1)):
        opened(settings, SourceOptions()).close()
        lines = [line for line in logged if line["event"] == "decompression not bounded"]
        assert [{key: line[key] for key in told} for line in lines] == [told] * times


def test_missing_brokers(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checks, "__init__", partialmethod(Checks.__init__, seconds=0.5))
    with pytest.raises(ConnectorError, match=r"cannot be reached at no\.such\.host\.invalid:1"):
        bed.source(bootstrap_servers="no.such.host.invalid:1")


def test_an_impossible_replication_factor(bed: Bed) -> None:
    bed.topic = "impossible"
    with pytest.raises(ConnectorError, match="could not be created with 1 partitions and rep"):
        bed.source(create_topics=True, replication_factor=7)


@on_both_clients
def test_two_instances_create_a_topic(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first look finds no topic, although it exists.
    admin = ConfluentAdmin if bed.client == "confluent" else PythonAdmin
    look, looks = admin.find, iter([True])

    def look_too_early(self: Any, topic: str) -> Found | None:
        return None if next(looks, False) else look(self, topic)

    monkeypatch.setattr(admin, "find", look_too_early)
    assert len(gain(bed.source(create_topics=True))) == 4
    assert not list(looks)
