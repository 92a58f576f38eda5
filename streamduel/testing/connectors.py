r"""The checks that every connector must pass, ours and those of a third party.

A test runs each check on a `ConnectorFixture`: one connector with an empty click log of one
partition, new for each check. `ConfiguredConnector` is one made from settings.

    from streamduel.testing.connectors import CHECKS, ConfiguredConnector

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_connector(check, tmp_path):
        log = tmp_path / "clicks.jsonl"
        log.touch()

        def append(values):
            with log.open("ab") as file:
                file.writelines(value + b"\n" for value in values)

        def dead_letters():
            letters = tmp_path / "out" / "dead_letters.jsonl"
            return letters.read_bytes().splitlines() if letters.exists() else []

        source = {"connector": "mine", "path": log}
        sink = {"connector": "mine", "path": tmp_path / "out"}
        snapshots = {"connector": "mine", "path": tmp_path / "state"}
        check(ConfiguredConnector(connector, source, sink, snapshots, append, dead_letters))

A check raises AssertionError. With `pytest.register_assert_rewrite("streamduel.testing")` in your
conftest.py, pytest shows the values that differ.

`source`, `sink` and `snapshots` are the sections of a configuration, in the connector's own keys;
`append` adds records to the click log, as a producer does; `dead_letters` returns the values of the
dead letters that a reader sees, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Final, NamedTuple

from streamduel.connector import LogRecord, Message, Outlet, PartitionCommit, Snapshot
from streamduel.errors import ConnectorError, Fenced
from streamduel.stream.commit import commit
from streamduel.testing.connector_fixture import ConfiguredConnector, ConnectorFixture
from streamduel.testing.polling import QUIET, gain, own, poll_until, read

__all__ = ["CHECKS", "ConfiguredConnector", "ConnectorFixture"]


class _Crash(BaseException):
    """The end of the process."""


def _work(number: int) -> PartitionCommit:
    """The commit of a record, with two outputs of each kind."""
    return PartitionCommit(
        partition=0,
        next_offset=number,
        assignments=[
            Message(b"search", b'{"experiment":"search","epoch":%d}' % epoch)
            for epoch in (2 * number, 2 * number + 1)
        ],
        dead_letters=[
            Message(None, b'{"reason":"%s","offset":%d}' % (reason, number))
            for reason in (b"unknown_arm", b"invalid_json")
        ],
        entries={"partition": b"{}", "experiment/search": b'{"state":%d}' % number},
    )


class _Visible(NamedTuple):
    """What other processes see: published assignments, dead letters and the snapshot."""

    assignments: list[bytes]
    dead_letters: list[bytes]
    snapshot: Snapshot | None


def _after(*works: PartitionCommit) -> _Visible:
    """What is visible after these commits."""
    return _Visible(
        [message.value for work in works for message in work.assignments],
        [message.value for work in works for message in work.dead_letters],
        Snapshot(works[-1].next_offset, works[-1].entries) if works else None,
    )


def _visible(fixture: ConnectorFixture) -> _Visible:
    """What is visible now."""
    with closing(fixture.archive()) as archive:
        published = [message.value for message in archive.published()]
        found = archive.load(0)
        assert found is None or 0 in archive.partitions()
        return _Visible(published, list(fixture.dead_letters()), found)


def check_a_partition_delivers_nothing_before_seek(fixture: ConnectorFixture) -> None:
    """A gained partition is announced first."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        gain(source)
        assert not source.poll(QUIET).records
        assert source.seek(0, None) == 0
        assert [record.value for record in read(source, 2)] == [b"one", b"two"]


def check_records_arrive_in_the_order_of_their_offsets(fixture: ConnectorFixture) -> None:
    """Offsets count from 0, across polls."""
    values = [b"record %d" % number for number in range(2500)]
    fixture.append(values)
    with closing(fixture.source()) as source:
        own(source)
        records = read(source, len(values))
        assert [record.offset for record in records] == list(range(len(values)))
        assert [record.value for record in records] == values


def check_a_value_may_be_any_bytes(fixture: ConnectorFixture) -> None:
    """Also none, and no UTF-8; an empty value is no tombstone. Without newlines, as in a file."""
    values = [b"one", b"", b"\xff\x00", b"four"]
    fixture.append(values)
    with closing(fixture.source()) as source:
        own(source)
        assert [record.value for record in read(source, len(values))] == values


def check_seek_to_an_offset(fixture: ConnectorFixture) -> None:
    """The record at the offset is the first one delivered."""
    fixture.append([b"%d" % number for number in range(100)])
    with closing(fixture.source()) as source:
        gain(source)
        assert source.seek(0, 40) == 40
        first = read(source, 60)[0]
        assert (first.offset, first.value) == (40, b"40")


def check_a_seek_finds_the_present_end(fixture: ConnectorFixture) -> None:
    """Not that of the opening: a snapshot that is loaded in between may continue behind it."""
    with closing(fixture.log()) as log:
        gain(log)
        fixture.append([b"one", b"two"])
        assert log.seek(0, 1) == 1
        assert read(log, 1)[0].value == b"two"


def check_caught_up_after_the_last_record(fixture: ConnectorFixture) -> None:
    """Not before all records were delivered; later records change nothing."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        own(source)
        assert not source.caught_up(0)
        read(source, 3)
        poll_until(source, "caught_up", lambda _: source.caught_up(0))
        fixture.append([b"four"])
        assert source.caught_up(0)


def check_lags_count_records_not_delivered(fixture: ConnectorFixture) -> None:
    """Both before and after reading."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        gain(source)
        source.seek(0, 1)
        assert source.lags([0]) == {0: 2}
        read(source, 2)
        assert source.lags([0]) == {0: 0}


def check_reannounce_loses_and_gains_the_partition(fixture: ConnectorFixture) -> None:
    """In one poll; nothing is delivered before the next `seek`."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        own(source)
        read(source, 2)
        source.reannounce()
        fixture.append([b"three"])
        poll = poll_until(source, "gain of partition 0", lambda poll: bool(poll.gained))
        assert (list(poll.lost), list(poll.gained)) == ([0], [0])
        assert not source.poll(QUIET).records
        source.seek(0, 1)
        assert read(source, 1)[0].value == b"two"


def check_a_poll_with_hold_delivers_no_records(fixture: ConnectorFixture) -> None:
    """The next poll delivers them."""
    fixture.append([b"one"])
    with closing(fixture.source()) as source:
        own(source)
        assert not source.poll(QUIET, hold=True).records
        assert [record.value for record in read(source, 1)] == [b"one"]


def check_a_source_describes_itself(fixture: ConnectorFixture) -> None:
    """The same click log has the same id for every reader."""
    fixture.append([b"one"])
    ids = []
    for _ in range(2):
        with closing(fixture.source()) as source:
            own(source)
            read(source, 1)
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


def check_appended_records_are_delivered_in_order(fixture: ConnectorFixture) -> None:
    """`append` adds to what producers write."""
    fixture.append([b"one"])
    added = [(b"search", b'{"number":2}'), (b"ads", b'{"number":3}')]
    with closing(fixture.source()) as source:
        own(source)
        assert [source.topic in it for it in fixture.append_controls(added)] == [True, True]
    fixture.append([b"four"])
    with closing(fixture.source()) as source:
        own(source)
        records = read(source, 4)
        values = [value for _, value in added]
        assert [record.value for record in records] == [b"one", *values, b"four"]
        assert [record.offset for record in records] == [0, 1, 2, 3]
        for record, (key, _) in zip(records[1:3], added, strict=True):
            assert record.key in {key, None}, "None in a click log without keys"
            stamp = record.timestamp
            assert stamp is None or stamp < 0 or stamp > 10**12, "in milliseconds, not in seconds"


def check_a_log_reads_the_same_as_the_source(fixture: ConnectorFixture) -> None:
    """Also while the source is open."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        own(source)
        records = read(source, 3)
        with closing(fixture.log()) as log:
            gain(log)
            assert log.seek(0, 1) == 1
            assert _content(read(log, 2)) == _content(records[1:])
            poll_until(log, "caught_up", lambda _: log.caught_up(0))
            assert (log.topic, log.partitions) == (source.topic, source.partitions)
            assert log.log_id(0) == source.log_id(0)


def _content(records: Sequence[LogRecord]) -> list[tuple[object, ...]]:
    return [(each.offset, each.timestamp, each.key, each.value) for each in records]


def check_there_is_no_snapshot_at_first(fixture: ConnectorFixture) -> None:
    """Nor an output."""
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            assert outlet.load(0) is None
            assert _visible(fixture) == _after()


def check_a_finished_commit_is_visible(fixture: ConnectorFixture) -> None:
    """Outputs in order, and the last snapshot, here and to others."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            commit(outlet, [_work(1)])
            commit(outlet, [_work(2)])
            assert outlet.load(0) == _after(_work(2)).snapshot
    assert _visible(fixture) == _after(_work(1), _work(2))


def check_equal_outputs_are_all_visible(fixture: ConnectorFixture) -> None:
    """Two equal dead letters of one commit stay two, and those of the next one are added."""
    letters = [Message(None, b"{}")] * 2
    works = [replace(_work(number), dead_letters=letters) for number in (1, 2)]
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            for work in works:
                commit(outlet, [work])
    assert _visible(fixture) == _after(*works)


def check_a_snapshot_is_loaded_in_another_thread(fixture: ConnectorFixture) -> None:
    """The service loads snapshots in threads, and commits in the one that opened the outlet."""
    fixture.append([b"one", b"two"])
    with closing(fixture.source()) as source, ThreadPoolExecutor(1) as thread:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            for work in (_work(1), _work(2)):
                commit(outlet, [work])
                assert thread.submit(outlet.load, 0).result() == _after(work).snapshot


def check_a_former_owner_commits_nothing(fixture: ConnectorFixture) -> None:
    """The partition passes to a second process when the first one hangs; or it cannot be opened.

    The second source must gain the partition within a minute: configure a short timeout of polls.
    """
    fixture.append([b"one", b"two"])
    with ExitStack() as opened:
        source = opened.enter_context(closing(fixture.source()))
        own(source)
        former = opened.enter_context(closing(fixture.outlet(source)))
        commit(former, [_work(1)])
        try:
            heir = _second_owner(fixture, opened)
        except ConnectorError:
            heir = former
        else:
            for _ in range(2):  # the former one is used on, and is refused again
                _refused(former, _work(2))
                assert _visible(fixture) == _after(_work(1))
        assert heir.load(0) == _after(_work(1)).snapshot
        commit(heir, [_work(2)])
        assert _visible(fixture) == _after(_work(1), _work(2))


def _second_owner(fixture: ConnectorFixture, opened: ExitStack) -> Outlet:
    """An outlet of another process that has gained the partition."""
    source = opened.enter_context(closing(fixture.source()))
    own(source)
    return opened.enter_context(closing(fixture.outlet(source)))


def _refused(outlet: Outlet, work: PartitionCommit) -> None:
    try:
        commit(outlet, [work])
    except Fenced:
        return
    raise AssertionError("the commit of a former owner did not raise Fenced")


def check_entries_that_did_not_change_are_kept(fixture: ConnectorFixture) -> None:
    """A commit holds changed entries only, or none."""
    fixture.append([b"one", b"two", b"three"])
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            commit(outlet, [_work(1)])
            commit(outlet, [PartitionCommit(0, 2, entries={"partition": b'{"changed":1}'})])
            commit(outlet, [PartitionCommit(0, 3)])
    expected = {**_work(1).entries, "partition": b'{"changed":1}'}
    assert _visible(fixture).snapshot == Snapshot(3, expected)


def check_a_crash_before_finish_leaves_nothing(fixture: ConnectorFixture) -> None:
    """Neither of the first commit nor of the second; the next run makes the same commit again."""
    finished: list[PartitionCommit] = []
    for work in (_work(1), _work(2)):
        for step in ("before write", "before finish"):
            _crash_at(fixture, step, work)
            assert _visible(fixture) == _after(*finished)
        with closing(fixture.source()) as source:
            own(source)
            with closing(fixture.outlet(source)) as outlet:
                assert outlet.load(0) == _after(*finished).snapshot
                commit(outlet, [work])
        finished.append(work)
        assert _visible(fixture) == _after(*finished)


def check_a_crash_after_finish_loses_nothing(fixture: ConnectorFixture) -> None:
    """Readers and the next run see the whole commit, the first one and the second."""
    _crash_at(fixture, "after finish", _work(1))
    assert _visible(fixture) == _after(_work(1))
    _crash_at(fixture, "after finish", _work(2))
    assert _visible(fixture) == _after(_work(1), _work(2))
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            assert outlet.load(0) == _after(_work(2)).snapshot


def _crash_at(fixture: ConnectorFixture, step: str, work: PartitionCommit) -> None:
    def crash(reached: str, /) -> None:
        if reached == step:
            raise _Crash

    fixture.append([b"a record"])
    with closing(fixture.source()) as source:
        own(source)
        with closing(fixture.outlet(source)) as outlet:
            try:
                commit(outlet, [work], crash)
            except _Crash:
                return
    raise AssertionError(f"no step is called '{step}'")


CHECKS: Final[Sequence[Callable[[ConnectorFixture], None]]] = [
    check for name, check in sorted(globals().items()) if name.startswith("check_")
]
"""All checks of this module."""
