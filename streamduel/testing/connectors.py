"""The checks that every connector must pass, ours and those of a third party.

A test runs each check on a `ConnectorFixture`: one connector with an empty click log of one
partition, new for each check. `ConfiguredConnector` is one made from settings.

    from streamduel.testing.connectors import CHECKS, ConfiguredConnector

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_connector(check, tmp_path):
        log = tmp_path / "clicks.jsonl"

        def append(values):
            with log.open("a") as file:
                for value in values:
                    print(value.decode(), file=file)

        source = {"connector": "mine", "path": log}
        sink = {"connector": "mine", "path": tmp_path / "out"}
        snapshots = {"connector": "mine", "path": tmp_path / "state"}
        check(ConfiguredConnector(connector, source, sink, snapshots, append))

A check raises AssertionError. With `pytest.register_assert_rewrite("streamduel.testing")` in your
conftest.py, pytest shows the values that differ.

`source`, `sink` and `snapshots` are the sections of a configuration, in the connector's own keys;
`append` adds records to the click log, as a producer does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, Protocol

from streamduel.connector import (
    Archive,
    Connector,
    Failpoint,
    LogRecord,
    Message,
    Outlet,
    PartitionCommit,
    Poll,
    Snapshot,
    Source,
    SourceOptions,
    no_failpoint,
)
from streamduel.stream.commit import commit

PATIENCE: Final = 60.0
"""Seconds within which a connector must respond, on a busy machine too."""

QUIET: Final = 0.3
"""Seconds without records after which a partition is taken to deliver none."""


class ConnectorFixture(Protocol):
    """One connector with a click log of one partition, ready to be tested."""

    def append(self, values: Sequence[bytes]) -> None:
        """Add records to the click log, as producers do."""

    def append_one(self, key: bytes, value: bytes) -> str:
        """Add a record, as `streamduel control` does."""

    def source(self) -> Source:
        """Open a source, as the service does."""

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        """Open an outlet, as the service does."""

    def archive(self) -> Archive:
        """Open an archive, as `inspect` does."""


class ConfiguredConnector:
    """A `ConnectorFixture` made from a connector and its settings.

    Args:
        connector: the plug-in.
        source: the configuration's section `source`.
        sink: the section `sink`.
        snapshots: the section `snapshots`.
        append: adds records to the click log's only partition.
    """

    def __init__(
        self, connector: Connector, source: Mapping[str, Any], sink: Mapping[str, Any],
        snapshots: Mapping[str, Any], append: Callable[[Sequence[bytes]], None],
    ) -> None:  # fmt: skip
        self._connector = connector
        self._source = connector.source_settings.model_validate(source)
        self._sink = connector.sink_settings.model_validate(sink)
        self._snapshots = connector.snapshot_settings.model_validate(snapshots)
        self._append = append

    def append(self, values: Sequence[bytes]) -> None:
        """Add records to the click log."""
        self._append(values)

    def append_one(self, key: bytes, value: bytes) -> str:
        """Add a record with the connector's own `append`."""
        return self._connector.append(self._source, key, value)

    def source(self) -> Source:
        """Open a source that ends at the click log's present end."""
        return self._connector.open_source(self._source, SourceOptions(until_end=True))

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        """Open an outlet."""
        return self._connector.open_outlet(self._sink, self._snapshots, source, failpoint)

    def archive(self) -> Archive:
        """Open an archive."""
        return self._connector.open_archive(self._sink, self._snapshots)


class _Crash(BaseException):
    """The end of the process."""


def _poll_until(source: Source, enough: Callable[[Poll], bool]) -> Poll:
    """Poll until one poll is enough."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        poll = source.poll(0.1)
        if enough(poll):
            return poll
    raise AssertionError(f"no such poll within {PATIENCE:.0f} s")


def _gain(source: Source) -> None:
    """Wait for the ownership of the partition."""
    _poll_until(source, lambda poll: 0 in poll.gained)


def _own(source: Source) -> None:
    """Gain the partition and seek: only an owner that has called `seek` may commit."""
    _gain(source)
    source.seek(0, None)


def _read(source: Source, count: int) -> list[LogRecord]:
    """Read at least so many records."""
    records: list[LogRecord] = []

    def enough(poll: Poll) -> bool:
        records.extend(poll.records.get(0, ()))
        return len(records) >= count

    _poll_until(source, enough)
    return records


def _work(number: int, next_offset: int) -> PartitionCommit:
    """A commit with one output of each kind."""
    return PartitionCommit(
        partition=0,
        next_offset=next_offset,
        assignments=[Message(b"search", b'{"experiment":"search","epoch":%d}' % number)],
        dead_letters=[Message(None, b'{"reason":"invalid_json","offset":%d}' % number)],
        entries={"partition": b"{}", "experiment/search": b'{"state":%d}' % number},
    )


def _snapshot(work: PartitionCommit) -> Snapshot:
    return Snapshot(work.next_offset, work.entries)


def _visible(fixture: ConnectorFixture) -> tuple[list[bytes], Snapshot | None]:
    """What other processes see: published assignments and the snapshot."""
    with closing(fixture.archive()) as archive:
        published = [message.value for message in archive.published()]
        found = archive.load(0)
        assert found is None or 0 in archive.partitions()
        return published, found


def check_a_partition_delivers_nothing_before_seek(fixture: ConnectorFixture) -> None:
    """A gained partition is announced first."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        _gain(source)
        assert not source.poll(QUIET).records
        assert source.seek(0, None) == 0
        assert [record.value for record in _read(source, 2)] == [b"one", b"two"]


def check_records_arrive_in_the_order_of_their_offsets(fixture: ConnectorFixture) -> None:
    """Offsets count from 0, across polls."""
    values = [b"record %d" % number for number in range(2500)]
    fixture.append(values)
    with closing(fixture.source()) as source:
        _own(source)
        records = _read(source, len(values))
        assert [record.offset for record in records] == list(range(len(values)))
        assert [record.value for record in records] == values


def check_seek_to_an_offset(fixture: ConnectorFixture) -> None:
    """The record at the offset is the first one delivered."""
    fixture.append([b"%d" % number for number in range(100)])
    with closing(fixture.source()) as source:
        _gain(source)
        assert source.seek(0, 40) == 40
        first = _read(source, 60)[0]
        assert (first.offset, first.value) == (40, b"40")


def check_caught_up_after_the_last_record(fixture: ConnectorFixture) -> None:
    """Not before all records were delivered."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        _own(source)
        assert not source.caught_up(0)
        _read(source, 3)
        _poll_until(source, lambda _: source.caught_up(0))


def check_lags_count_records_not_delivered(fixture: ConnectorFixture) -> None:
    """Both before and after reading."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        _gain(source)
        source.seek(0, 1)
        assert source.lags([0]) == {0: 2}
        _read(source, 2)
        assert source.lags([0]) == {0: 0}


def check_reannounce_loses_and_gains_the_partition(fixture: ConnectorFixture) -> None:
    """In one poll; nothing is delivered before the next `seek`."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        _own(source)
        _read(source, 2)
        source.reannounce()
        poll = _poll_until(source, lambda poll: bool(poll.gained))
        assert (list(poll.lost), list(poll.gained)) == ([0], [0])
        assert not source.poll(QUIET).records
        source.seek(0, 1)
        assert [record.value for record in _read(source, 1)] == [b"two"]


def check_a_poll_with_hold_delivers_no_records(fixture: ConnectorFixture) -> None:
    """The next poll delivers them."""
    fixture.append([b"one"])
    with closing(fixture.source()) as source:
        _own(source)
        assert not source.poll(QUIET, hold=True).records
        assert [record.value for record in _read(source, 1)] == [b"one"]


def check_a_source_describes_itself(fixture: ConnectorFixture) -> None:
    """The same click log has the same id for every reader."""
    fixture.append([b"one"])
    ids = []
    for _ in range(2):
        with closing(fixture.source()) as source:
            _own(source)
            _read(source, 1)
            assert source.connected is True
            assert set(source.stable_offset_lags([0]).values()) <= {0}
            ids.append(source.log_id(0))
    assert ids[0] == ids[1]
    assert ids[0] is None or isinstance(ids[0], str)


def check_every_experiment_has_a_home(fixture: ConnectorFixture) -> None:
    """Any name, in a click log of one partition."""
    with closing(fixture.source()) as source:
        assert source.partitions == 1
        assert {source.home(name) for name in ("search", "shop", "Suche-äöü", "")} == {0}
        assert source.topic


def check_an_appended_record_is_delivered_in_order(fixture: ConnectorFixture) -> None:
    """`append` adds to what producers write."""
    fixture.append([b"one"])
    with closing(fixture.source()) as source:
        _own(source)
        assert source.topic in fixture.append_one(b"search", b'{"number":2}')
    fixture.append([b"three"])
    with closing(fixture.source()) as source:
        _own(source)
        records = _read(source, 3)
        assert [record.value for record in records] == [b"one", b'{"number":2}', b"three"]
        assert [record.offset for record in records] == [0, 1, 2]
        assert records[1].key in {b"search", None}, "None in a click log without keys"


def check_there_is_no_snapshot_at_first(fixture: ConnectorFixture) -> None:
    """Nor an assignment."""
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            assert outlet.load(0) is None
            assert _visible(fixture) == ([], None)


def check_a_finished_commit_is_visible(fixture: ConnectorFixture) -> None:
    """Outputs in order, and the last snapshot, here and to others."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            commit(outlet, [_work(1, 1)])
            commit(outlet, [_work(2, 2)])
            assert outlet.load(0) == _snapshot(_work(2, 2))
    published, snapshot = _visible(fixture)
    assert published == [message.value for n in (1, 2) for message in _work(n, n).assignments]
    assert snapshot == _snapshot(_work(2, 2))


def check_entries_that_did_not_change_are_kept(fixture: ConnectorFixture) -> None:
    """A commit holds changed entries only, or none."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            commit(outlet, [_work(1, 1)])
            commit(outlet, [PartitionCommit(0, 2, entries={"partition": b'{"changed":1}'})])
            commit(outlet, [PartitionCommit(0, 3)])
    expected = {**_work(1, 1).entries, "partition": b'{"changed":1}'}
    assert _visible(fixture)[1] == Snapshot(3, expected)


def check_a_crash_before_finish_leaves_nothing(fixture: ConnectorFixture) -> None:
    """Neither for readers nor for the next run, which makes the same commit again."""
    for step in ("before write", "before finish"):
        _crash_at(fixture, step)
        assert _visible(fixture) == ([], None)
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            assert outlet.load(0) is None
            commit(outlet, [_work(1, 1)])
    assert _visible(fixture) == ([_work(1, 1).assignments[0].value], _snapshot(_work(1, 1)))


def check_a_crash_after_finish_loses_nothing(fixture: ConnectorFixture) -> None:
    """Readers and the next run see the whole commit."""
    _crash_at(fixture, "after finish")
    assert _visible(fixture) == ([_work(1, 1).assignments[0].value], _snapshot(_work(1, 1)))
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            assert outlet.load(0) == _snapshot(_work(1, 1))


def _crash_at(fixture: ConnectorFixture, step: str) -> None:
    def crash(reached: str, /) -> None:
        if reached == step:
            raise _Crash

    fixture.append([b"a record"])
    with closing(fixture.source()) as source:
        _own(source)
        with closing(fixture.outlet(source)) as outlet:
            try:
                commit(outlet, [_work(1, 1)], crash)
            except _Crash:
                return
    raise AssertionError(f"no step is called '{step}'")


CHECKS: Final[Sequence[Callable[[ConnectorFixture], None]]] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_")
]
"""All checks of this module."""
