"""What every connector promises, as small checks that run on each of them.

A check is given a bed: one connector with a log of one partition, made anew for each check.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

from streamduel.connector import (
    Failpoint,
    LogRecord,
    Message,
    Outlet,
    PartitionCommit,
    Poll,
    Source,
    no_failpoint,
)
from streamduel.stream.commit import commit

PATIENCE = 30.0
"""Seconds within which a broker on a busy machine must have answered."""


class Bed(Protocol):
    """One connector, ready to be tried."""

    def append(self, values: Sequence[bytes]) -> None:
        """Add records to the log's only partition."""

    def append_one(self, key: bytes, value: bytes) -> str:
        """Add a record as `control` does."""

    def source(self) -> Source:
        """A source as the service opens it."""

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        """An outlet as the service opens it."""

    def archive(self) -> Outlet:
        """An outlet as `inspect` opens it."""


class Crash(BaseException):
    """Stands for the end of the process."""


@contextmanager
def opened(outlet: Outlet) -> Iterator[Outlet]:
    try:
        yield outlet
    finally:
        outlet.sink.close()
        outlet.snapshots.close()


def poll_until(source: Source, enough: Callable[[Poll], bool]) -> Poll:
    """Poll until one poll is enough."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        poll = source.poll(0.1)
        if enough(poll):
            return poll
    raise AssertionError(f"nothing came within {PATIENCE} s")


def gain(source: Source) -> None:
    """Wait until the partition is ours."""
    poll_until(source, lambda poll: 0 in poll.gained)


def own(source: Source) -> None:
    """Gain the partition and seek its beginning: only then may work on it be committed."""
    gain(source)
    source.seek(0, None)


def read(source: Source, count: int) -> list[LogRecord]:
    """The next records, exactly so many of them."""
    records: list[LogRecord] = []

    def enough(poll: Poll) -> bool:
        records.extend(poll.records.get(0, ()))
        return len(records) >= count

    poll_until(source, enough)
    return records


def work(number: int, next_offset: int) -> PartitionCommit:
    """A commit with one output of each kind."""
    return PartitionCommit(
        partition=0,
        next_offset=next_offset,
        assignments=[Message(b"search", b'{"experiment":"search","epoch":%d}' % number)],
        dead_letters=[Message(None, b'{"reason":"invalid_json","offset":%d}' % number)],
        entries={
            "partition": b'{"next":%d}' % next_offset,
            "experiment/search": b'{"state":%d}' % number,
        },
    )


def visible(bed: Bed) -> tuple[list[bytes], dict[str, bytes]]:
    """What an outsider sees: published assignments and the snapshot."""
    with opened(bed.archive()) as archive:
        published = [message.value for message in archive.sink.published()]
        return published, dict(archive.snapshots.load(0))


def check_a_partition_is_announced_and_silent_until_it_is_sought(bed: Bed) -> None:
    bed.append([b"one", b"two"])
    with closing(bed.source()) as source:
        gain(source)
        assert not source.poll(0.3).records
        assert source.seek(0, None) == 0
        assert [record.value for record in read(source, 2)] == [b"one", b"two"]


def check_records_come_in_the_order_of_their_offsets(bed: Bed) -> None:
    values = [b"record %d" % number for number in range(2500)]
    bed.append(values)
    with closing(bed.source()) as source:
        gain(source)
        source.seek(0, None)
        records = read(source, len(values))
        assert [record.offset for record in records] == list(range(len(values)))
        assert [record.value for record in records] == values


def check_a_source_goes_on_from_where_it_is_sought(bed: Bed) -> None:
    bed.append([b"%d" % number for number in range(100)])
    with closing(bed.source()) as source:
        gain(source)
        assert source.seek(0, 40) == 40
        first = read(source, 60)[0]
        assert (first.offset, first.value) == (40, b"40")


def check_it_has_caught_up_only_when_everything_was_delivered(bed: Bed) -> None:
    bed.append([b"one", b"two", b"three"])
    with closing(bed.source()) as source:
        gain(source)
        source.seek(0, None)
        assert not source.caught_up(0)
        read(source, 3)
        poll_until(source, lambda poll: source.caught_up(0))


def check_lags_count_what_is_not_delivered(bed: Bed) -> None:
    bed.append([b"one", b"two", b"three"])
    with closing(bed.source()) as source:
        gain(source)
        source.seek(0, 1)
        assert source.lags([0]) == {0: 2}
        read(source, 2)
        assert source.lags([0]) == {0: 0}


def check_reannouncing_loses_and_regains_every_partition(bed: Bed) -> None:
    bed.append([b"one", b"two"])
    with closing(bed.source()) as source:
        gain(source)
        source.seek(0, None)
        read(source, 2)
        source.reannounce()
        poll = poll_until(source, lambda poll: bool(poll.gained))
        assert (list(poll.lost), list(poll.gained)) == ([0], [0])
        assert not source.poll(0.3).records
        source.seek(0, 1)
        assert [record.value for record in read(source, 1)] == [b"two"]


def check_every_experiment_has_a_home(bed: Bed) -> None:
    with closing(bed.source()) as source:
        assert source.partitions == 1
        assert {source.home(name) for name in ("search", "shop", "Suche-äöü", "")} == {0}
        assert source.topic


def check_what_is_appended_is_delivered_at_home(bed: Bed) -> None:
    """In its turn among what others write."""
    bed.append([b"one"])
    with closing(bed.source()) as source:
        own(source)
        assert source.topic in bed.append_one(b"search", b'{"number":2}')
    bed.append([b"three"])
    with closing(bed.source()) as source:
        home = source.home("search")
        own(source)
        records = read(source, 3)
        assert [record.value for record in records] == [b"one", b'{"number":2}', b"three"]
        assert [record.offset for record in records] == [0, 1, 2]
        assert records[1].key in {b"search", None}, "None where a log has no keys"
    assert home == 0


def check_a_fresh_store_is_empty(bed: Bed) -> None:
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            assert outlet.snapshots.load(0) == {}
            assert list(outlet.sink.published()) == []


def check_a_finished_commit_is_visible_as_a_whole(bed: Bed) -> None:
    bed.append([b"one", b"two"])
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            commit(outlet, [work(1, 1)])
            commit(outlet, [work(2, 2)])
    published, entries = visible(bed)
    assert published == [message.value for n in (1, 2) for message in work(n, n).assignments]
    assert entries == work(2, 2).entries


def check_entries_that_did_not_change_stay(bed: Bed) -> None:
    bed.append([b"one", b"two"])
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            commit(outlet, [work(1, 1)])
            commit(outlet, [PartitionCommit(0, 2, entries={"partition": b'{"next":2}'})])
    assert visible(bed)[1] == {**work(1, 1).entries, "partition": b'{"next":2}'}


def check_a_crash_before_the_last_step_leaves_nothing(bed: Bed) -> None:
    """Neither to readers, nor to the next life, which commits the same work once more."""
    for step in ("before write", "before save"):
        _crash_at(bed, step)
        assert visible(bed) == ([], {})
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            assert outlet.snapshots.load(0) == {}
            commit(outlet, [work(1, 1)])
    assert visible(bed) == ([work(1, 1).assignments[0].value], work(1, 1).entries)


def check_a_crash_after_the_last_step_loses_nothing(bed: Bed) -> None:
    _crash_at(bed, "after finish")
    assert visible(bed) == ([work(1, 1).assignments[0].value], work(1, 1).entries)
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            assert outlet.snapshots.load(0) == work(1, 1).entries


def _crash_at(bed: Bed, step: str) -> None:
    def die(passed: str, /) -> None:
        if passed == step:
            raise Crash

    bed.append([b"a record"])
    with closing(bed.source()) as source:
        own(source)
        with opened(bed.outlet(source)) as outlet:
            try:
                commit(outlet, [work(1, 1)], die)
            except Crash:
                return
    raise AssertionError(f"no step is called '{step}'")


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
