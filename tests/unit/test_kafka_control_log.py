"""How markers are resolved, with a control topic in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition, errors
from structlog.typing import EventDict

from streamduel.connector import ControlMarker, LogRecord
from streamduel.control_markers import Marker, digest
from streamduel.errors import ConnectorError
from streamduel.records import Rejected
from streamduel.testing import Record
from streamduel_kafka import control_log
from streamduel_kafka.client import ConsumerOptions
from streamduel_kafka.control_log import ControlLog
from streamduel_kafka.settings import SourceSettings

AT = TopicPartition("control", 0)
VALUES = {0: b"zero", 1: b"one", 4: b"four"}


class Topic:
    """The control topic, as a consumer of it."""

    def __init__(self) -> None:
        self.begin, self.end, self.read = 0, 5, True
        self.at = 0

    def assign(self, positions: dict[TopicPartition, int]) -> None:
        self.at = positions.get(AT, self.at)

    def position(self, _at: TopicPartition) -> int:
        return self.at

    def poll(self, seconds: float) -> dict[TopicPartition, list[Any]]:
        if not self.read:
            return {}
        found = [
            SimpleNamespace(offset=offset, key=b"search", value=value)
            for offset, value in VALUES.items()
            if max(self.at, self.begin) <= offset < self.end
        ]
        self.at = self.end
        return {AT: found}

    def close(self) -> None:
        """Nothing is open."""

    def known(self, _topic: str) -> None:
        """No metadata yet."""

    def begins(self, _: Any, seconds: float) -> dict[TopicPartition, int]:
        return {AT: self.begin}

    def stable_ends(self, _: Any, seconds: float) -> dict[TopicPartition, int]:
        return {AT: self.end}


class Markers:
    """The click log, as a producer of it."""

    def __init__(self) -> None:
        self.sent: list[Marker] = []
        self.error: Exception | None = None
        self.broken = False
        self.flushed = 0

    def flush(self, _seconds: float) -> None:
        self.flushed += 1

    def discard(self) -> None:
        self.broken = False

    def send(self, _topic: str, key: bytes, value: bytes, partition: int) -> Any:
        assert (key, partition) == (b"search", 0)
        if self.broken:
            raise errors.OutOfOrderSequenceNumberError("fatal")
        self.sent.append(msgspec.json.decode(value, type=Marker))
        return SimpleNamespace(done=True, error=self.error)


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def markers() -> Markers:
    return Markers()


@pytest.fixture(autouse=True)
def _connected(monkeypatch: pytest.MonkeyPatch, topic: Topic, markers: Markers) -> None:
    def connect(options: Any, _settings: Any, _seconds: float = 30.0) -> Any:
        return topic if isinstance(options, ConsumerOptions) else markers

    monkeypatch.setattr(control_log, "connect_at_start", connect)
    monkeypatch.setattr(control_log, "connect", connect)
    monkeypatch.setattr(control_log, "LOOK_SECONDS", 0.0)


def opened(
    *, forwards: bool = True, since: int = 0, counts: Callable[[int], bool] = lambda _: True
) -> ControlLog:
    settings = SourceSettings(
        bootstrap_servers=["nowhere:1"], topic="clicks", group="g", control_topic="control"
    )
    log = ControlLog(settings, None, forwards=forwards)
    log.seek(0, since, counts)
    log.look()
    return log


def marker(offset: int, value: bytes = b"") -> bytes:
    return msgspec.json.encode(
        Marker("m", "search", offset, digest(value or VALUES.get(offset, b"?")))
    )


def merged(log: ControlLog, *values: bytes) -> tuple[list[Any], list[int]]:
    """The offsets of control records at each marker, other values, and rewound offsets."""
    rewound: list[int] = []
    batch: list[LogRecord] = [
        Record(number, value, number, b"search") for number, value in enumerate(values)
    ]
    found = log.merge({0: batch}, lambda _partition, offset: rewound.append(offset)).get(0, [])
    told = [
        [control.offset for control in it.controls] if isinstance(it, ControlMarker) else it.value
        for it in found
    ]
    return told, rewound


def test_each_record_gets_a_marker_and_takes_effect_there(markers: Markers) -> None:
    log = opened()
    log.look()
    assert [it.control_offset for it in markers.sent] == [0, 1, 4]
    assert merged(log, b"click", marker(0), marker(1), b"click", marker(4)) == (
        [b"click", [0], [1], b"click", [4]], [],
    )  # fmt: skip


def test_a_batch_that_cannot_be_read_keeps_its_verdict(
    monkeypatch: pytest.MonkeyPatch, markers: Markers
) -> None:
    verdict: Any = Rejected("too_large", "the batch is too large.")
    monkeypatch.setitem(VALUES, 4, verdict)
    log = opened()
    last = Record(0, msgspec.json.encode(markers.sent[-1]), 0, b"search")
    [found] = log.merge({0: [last]}, lambda *_: None)[0]
    assert isinstance(found, ControlMarker)
    assert found.controls[-1].value is verdict


def test_thousands_of_records_keep_their_order(
    monkeypatch: pytest.MonkeyPatch, topic: Topic, markers: Markers
) -> None:
    """The poll that reads them must end long before `source.max_poll_interval_ms`, a minute.

    This takes a second; a look at all of them for each takes a minute.
    """
    many = 20_000
    monkeypatch.setattr(f"{__name__}.VALUES", dict.fromkeys(range(many), b"pause"))
    topic.end = many
    log = opened()
    log.look()
    told, rewound = merged(log, *map(msgspec.json.encode, markers.sent))
    assert (told, rewound) == ([[offset] for offset in range(many)], [])


def test_a_marker_that_was_passed_brings_nothing() -> None:
    log = opened(since=1)
    assert merged(log, marker(0), marker(1), marker(1), marker(4)) == ([[], [1], [], [4]], [])


@pytest.mark.parametrize("forwards", [True, False])
def test_a_marker_that_does_not_count_leaves_its_record_to_a_later_one(*, forwards: bool) -> None:
    log = opened(forwards=forwards, counts=lambda offset: offset != 1)
    told = merged(log, marker(0), marker(1), b"click", marker(1))
    assert told == ([[0], marker(1), b"click", [1]], [])


def test_a_marker_brings_the_records_before_it() -> None:
    assert merged(opened(), marker(4), marker(1)) == ([[0, 1, 4], []], [])


@pytest.mark.parametrize(
    "forged",
    [marker(1, b"other"), marker(2), marker(5), marker(10**9), b'{"type":"control_marker"'],
    ids=["digest", "no record", "next record", "far", "not JSON"],
)
def test_a_forged_marker_stays_a_record_of_the_click_log(forged: bytes) -> None:
    assert merged(opened(), forged, marker(0)) == ([forged, [0]], [])


def test_a_marker_waits_for_its_record(topic: Topic) -> None:
    topic.read = False
    log = opened(forwards=False)
    assert merged(log, b"click", marker(0), b"click") == ([b"click"], [1])
    topic.read = True
    log.look()
    assert merged(log, marker(0), b"click") == ([[0], b"click"], [])


def test_a_deleted_record_ends_a_replay_and_is_a_dead_letter_in_a_run(topic: Topic) -> None:
    topic.begin = 2
    assert merged(opened(), marker(1), marker(4)) == ([marker(1), [4]], [])
    with pytest.raises(ConnectorError, match=r"'control' no longer has record 1 of partition 0"):
        merged(opened(forwards=False), marker(1))


def test_records_deleted_before_they_were_read_are_logged(
    topic: Topic, logged: list[EventDict]
) -> None:
    def missed() -> list[tuple[int, int]]:
        return [
            (line["first"], line["last"])
            for line in logged
            if line["event"] == "control records missed"
        ]

    log = opened()  # 2 and 3 are markers of transactions
    topic.begin, topic.end = 2, 2
    opened(since=2)
    opened(forwards=False)
    assert not missed()
    log = opened()
    assert missed() == [(0, 1)]
    topic.begin = topic.end = 7
    log.look()
    assert missed() == [(0, 1), (2, 6)]
    log.seek(0, 0, lambda _: True)
    log.look()
    assert missed() == [(0, 1), (2, 6)], "after a rebalance not again"


def test_all_are_forwarded_when_their_markers_are_written(topic: Topic, markers: Markers) -> None:
    topic.read = False
    log = opened()
    assert not log.forwarded(0), "not read yet"
    topic.read, markers.error = True, errors.KafkaTimeoutError("slow")
    log.look()
    assert not log.forwarded(0), "sent, and not known to be written"
    log.look()
    assert not log.forwarded(0), "not written"
    markers.error = None
    log.look()
    topic.end = 9
    log.look()
    assert log.forwarded(0), "later records do not matter"


@pytest.mark.parametrize("read", [False, True])
def test_a_replay_forwards_nothing(topic: Topic, markers: Markers, *, read: bool) -> None:
    topic.read = read
    assert opened(forwards=False).forwarded(0)
    assert markers.sent == []


def test_records_of_a_partition_that_was_lost_stay_as_they_are() -> None:
    log = opened()
    log.keep([])
    assert merged(log, marker(0), b"click") == ([marker(0), b"click"], [])


def test_an_end_that_is_unknown_at_first_is_asked_again(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: Any) -> Any:
        raise errors.KafkaTimeoutError("slow")

    with monkeypatch.context() as away:
        away.setattr(topic, "stable_ends", unavailable)
        log = opened()
        log.look()
        assert not log.forwarded(0)
    assert log.forwarded(0)


def test_a_failed_marker_is_written_again(markers: Markers) -> None:
    markers.error = errors.KafkaTimeoutError("slow")
    log = opened()
    log.look()
    markers.error = None
    log.look()
    assert [it.control_offset for it in markers.sent].count(4) >= 2


def test_a_producer_that_has_failed_is_replaced(markers: Markers) -> None:
    markers.broken = True
    log = opened()
    assert not markers.sent
    log.look()
    assert [it.control_offset for it in markers.sent] == [0, 1, 4]


def test_a_producer_with_nothing_to_write_is_served(markers: Markers) -> None:
    log = opened()
    log.look()
    flushed = markers.flushed
    log.look()
    assert markers.flushed == flushed + 1


def test_a_missing_right_is_named(markers: Markers) -> None:
    markers.error = errors.TopicAuthorizationFailedError("clicks")
    log = opened()
    with pytest.raises(ConnectorError, match=r"does not allow .* to Write topic 'clicks'"):
        log.look()


def test_a_recreated_control_topic_is_refused() -> None:
    with pytest.raises(ConnectorError, match="ends at offset 5, but 6 was reached before"):
        opened(since=6)
