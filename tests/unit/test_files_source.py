"""Lines of a file as records: very long ones, the mark of UTF-8, and truncation."""

from __future__ import annotations

import codecs
import gzip
import math
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pytest
from structlog.typing import EventDict

from streamduel.errors import ConnectorError
from streamduel.records import Rejected
from streamduel_files.settings import STANDARD_INPUT
from streamduel_files.source import (
    CHUNK_BYTES,
    COUNTED_CHUNKS,
    KEPT_BYTES,
    MAX_LINE_BYTES,
    FileSource,
)

LONG = 30_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clicks.jsonl"


def values(path: Path, offset: int | None = None) -> Iterator[bytes | Rejected]:
    """The records from an offset to the end."""
    with closing(FileSource(path, to_end=True)) as source:
        source.poll(0)
        source.seek(0, offset)
        while not source.caught_up(0):
            for records in source.poll(0).records.values():
                for record in records:
                    assert record.value is not None
                    yield record.value


def test_a_command_knows_the_end_of_a_large_file_at_once(path: Path) -> None:
    path.write_bytes((b"x" * 1023 + b"\n") * 1024 * (COUNTED_CHUNKS + 1))
    lines = 1024 * (COUNTED_CHUNKS + 1)
    with closing(FileSource(path, to_end=True, serves=False)) as source:
        assert source.lags([0]) == {0: lines}
    with closing(FileSource(path, to_end=True)) as source:
        assert [source.lags([0]), source.lags([0])] == [{}, {0: lines}]


def test_what_was_read_is_not_counted_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamduel_files.source.SEEK_SECONDS", math.inf)  # however slow the disk
    path.write_bytes((b"x" * 1023 + b"\n") * 1024 * 3 * COUNTED_CHUNKS)
    lines = 1024 * 3 * COUNTED_CHUNKS
    with closing(FileSource(path, to_end=False)) as source:
        source.poll(0)
        source.seek(0, lines - 1000)
        assert source.lags([0]) == {0: 1000}
        assert len(source.poll(0).records[0]) == 1000
        assert source.lags([0]) == {0: 0}


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_a_lag_counts_each_line_once(path: Path, wanted: int) -> None:
    """Also a line that was delivered without its newline."""
    path.write_bytes(b"1\n2")
    with closing(FileSource(path, to_end=True)) as source:
        source.poll(0)
        source.seek(0, wanted)
        while not source.caught_up(0):
            source.poll(0)
        assert source.lags([0]) == {0: 0}
        path.write_bytes(b"1\n2\n3\n4\n")
        assert source.lags([0]) == {0: 2}


@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast"], ids=["end", "newline", "more"])
def test_of_a_very_long_line_the_beginning_and_the_size_are_known(path: Path, end: bytes) -> None:
    path.write_bytes(b"first\n" + b"0123456789" * (LONG // 10) + end)
    first, long, *others = values(path)

    assert first == b"first"
    assert isinstance(long, Rejected)
    assert long.reason == "too_large"
    assert long.sentence.startswith(f"the line has {LONG} bytes; limits.max_record_bytes allows at")
    assert (long.size, len(long.beginning or b"")) == (LONG, KEPT_BYTES)
    assert others == ([b"last"] if end == b"\nlast" else [])


def test_the_longest_line_is_whole(path: Path) -> None:
    path.write_bytes(b"x" * MAX_LINE_BYTES + b"\n")
    (value,) = values(path)
    assert value == b"x" * MAX_LINE_BYTES


def test_a_long_first_line_takes_time_in_proportion(path: Path) -> None:
    """Some 2 ms per MB, and 1,400 if it is read byte by byte; the bound is for slow machines."""
    path.write_bytes(b"x" * LONG + b"\n" + b"short\n" * 3000)
    started = time.process_time()
    assert sum(1 for _ in values(path)) == 3001
    with closing(FileSource(path, to_end=True)) as source:
        assert source.log_id(0) == source.log_id(0) is not None
    assert time.process_time() - started < 0.02 * LONG / 1e6


@pytest.mark.parametrize("name", ["clicks.jsonl", "clicks.jsonl.gz"])
def test_a_mark_of_utf_8_is_no_part_of_the_first_record(tmp_path: Path, name: str) -> None:
    path, mark = tmp_path / name, codecs.BOM_UTF8
    write = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(write(mark + b"first\n" + mark + b"second\n"))
    assert list(values(path)) == [b"first", mark + b"second"]
    assert list(values(path, 1)) == [mark + b"second"]

    path.write_bytes(write(mark + b"only"))
    assert list(values(path)) == [b"only"]


def test_a_file_that_is_written_again_and_is_longer_is_refused(path: Path) -> None:
    path.write_bytes(b"1\n2\n")
    with closing(FileSource(path, to_end=False)) as source:
        assert source.log_id(0) is not None
        source.poll(0)
        source.seek(0, None)
        assert len(source.poll(0).records[0]) == 2
        assert not source.poll(0).records
        path.write_bytes(b"3\n4\n5\n")
        with pytest.raises(ConnectorError, match="was written again; a click log may only grow"):
            source.poll(0)


def test_truncation_names_the_line_that_a_restart_needs(path: Path) -> None:
    path.write_bytes(b"x\n" * 100)
    with pytest.raises(ConnectorError, match=r"has 100 lines, but a restart .* line 8193 on"):
        list(values(path, 8192))


@pytest.mark.parametrize("to_end", [True, False])
@pytest.mark.parametrize("name", ["clicks.jsonl", "clicks.jsonl.gz"])
@pytest.mark.parametrize(
    ("content", "wanted", "lines"),
    [(b"", 1, "0 lines"), (b"1\n", 2, "1 line"), (b"1\n2", 3, "1 line")],
)
def test_lines_that_a_restart_needs_are_missing(
    tmp_path: Path, name: str, content: bytes, wanted: int, lines: str, to_end: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with closing(FileSource(path, to_end=to_end)) as source:
        source.poll(0)
        with pytest.raises(ConnectorError, match=f"has {lines}, but a restart .* {wanted + 1} on"):
            source.seek(0, wanted)


@pytest.fixture
def short_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `seek` that leaves all chunks but one to `poll`, as that of a large file does."""
    monkeypatch.setattr("streamduel_files.source.SEEK_SECONDS", 0.0)


@pytest.mark.usefixtures("short_seek")
@pytest.mark.parametrize("left", [0, 1, 5])
def test_a_poll_continues_a_long_seek(path: Path, left: int, logged: list[EventDict]) -> None:
    path.write_bytes(b"1234567\n" * (CHUNK_BYTES // 2) + b"last")  # four chunks, and some bytes
    wanted = CHUNK_BYTES // 2 + 1 - left
    with closing(FileSource(path, to_end=True)) as source:
        source.poll(0)
        assert source.seek(0, wanted) == wanted
        assert [each["event"] for each in logged] == ["position delayed"]
        polls = 0
        records: list[int] = []
        while not source.caught_up(0):
            assert source.lags([0]) == {0: max(0, left - 1 - len(records))}
            polls += 1
            records += [each.offset for each in source.poll(0).records.get(0, ())]
        assert records == list(range(wanted, wanted + left))
        assert polls > 3, "a poll skips a chunk"


@pytest.mark.usefixtures("short_seek")
def test_a_poll_finds_a_truncation_that_a_long_seek_has_not_reached(path: Path) -> None:
    path.write_bytes(b"1234567\n" * (CHUNK_BYTES // 4))
    with closing(FileSource(path, to_end=False)) as source:
        source.poll(0)
        source.seek(0, CHUNK_BYTES)
        with pytest.raises(ConnectorError, match=f"has {CHUNK_BYTES // 4:,} lines, but a restart"):
            source.poll(60)  # does not wait


def test_a_restart_continues_in_the_middle_of_what_is_read_at_once(path: Path) -> None:
    path.write_bytes(b"1\n2\n3")
    assert list(values(path, 1)) == [b"2", b"3"]
    assert list(values(path, 2)) == [b"3"]


def test_a_restart_after_a_line_without_its_newline_takes_it_for_read(path: Path) -> None:
    path.write_bytes(b"1\n2")
    assert list(values(path, 2)) == []
    path.write_bytes(b"1\n2\n3\n")
    assert list(values(path, 2)) == [b"3"]


def test_what_is_written_after_the_seek_is_beyond_the_end(path: Path) -> None:
    path.write_bytes(b"1\n")
    with closing(FileSource(path, to_end=True)) as source:
        source.poll(0)
        source.seek(0, None)
        path.write_bytes(b"1\n2\n")
        assert [each.value for each in source.poll(0).records[0]] == [b"1"]
        assert not source.poll(0).records
        assert source.caught_up(0)


def test_a_line_is_delivered_when_its_newline_arrives(path: Path) -> None:
    path.write_bytes(b"1\n2")
    with closing(FileSource(path, to_end=False)) as source:
        source.poll(0)
        source.seek(0, None)
        assert [each.value for each in source.poll(0).records[0]] == [b"1"]
        assert not source.poll(0).records
        assert not source.caught_up(0)
        path.write_bytes(b"1\n2\n")
        assert [each.value for each in source.poll(0).records[0]] == [b"2"]
        assert not source.poll(0).records
        assert source.caught_up(0)


def test_a_file_that_is_truncated_while_it_is_followed_is_refused(path: Path) -> None:
    path.write_bytes(b"1\n2\n")
    with closing(FileSource(path, to_end=False)) as source:
        source.poll(0)
        source.seek(0, None)
        assert len(source.poll(0).records[0]) == 2
        path.write_bytes(b"1\n")
        with pytest.raises(ConnectorError, match="truncated to 2 bytes, of which 4 were read"):
            source.poll(0)


@pytest.mark.parametrize("left", [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_a_file_that_is_truncated_before_its_end_is_read_is_refused(path: Path, left: int) -> None:
    path.write_bytes(b"1234567\n" * (CHUNK_BYTES // 4))
    with closing(FileSource(path, to_end=True)) as source:
        source.poll(0)
        source.seek(0, None)
        assert source.poll(0).records[0][-1].value == b"1234567"
        os.truncate(path, left)
        with pytest.raises(ConnectorError, match=f"was truncated to {left} bytes, of which"):
            source.poll(60)  # does not wait


def test_the_lines_of_a_compressed_file_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl.gz"
    path.write_bytes(gzip.compress(b"1\n2\n"))
    with closing(FileSource(path, to_end=True)) as source:
        assert source.lags([0]) == {}


@pytest.mark.parametrize("name", ["pipe", "pipe.gz"])
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ConnectorError) as caught:
        FileSource(tmp_path / name, to_end=True)
    assert str(caught.value) == (
        f"source.path {tmp_path / name} is not a regular file; '-' reads standard input."
    )


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[BinaryIO]:
    """The writing end of a pipe that is the standard input."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "wb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stdin", stdin)
        yield pipe


def test_an_empty_pipe_ends_when_its_writers_close_it(writer: BinaryIO) -> None:
    """A slow producer in front of `run --until-end` pauses, and has more."""
    with closing(FileSource(STANDARD_INPUT, to_end=True)) as source:
        source.poll(0)
        source.seek(0, None)
        writer.write(b"one\n")
        assert [each.value for each in source.poll(0).records[0]] == [b"one"]
        assert not source.poll(0).records
        assert not source.caught_up(0)
        writer.write(b"two")
        writer.close()
        assert [each.value for each in source.poll(0.1).records[0]] == [b"two"]
        assert source.caught_up(0)


@pytest.mark.parametrize("parts", [[b"one\ntwo\n"], [b"o", b"ne\n", b"two\n"]])
def test_standard_input_has_the_id_of_a_file_when_its_first_line_was_read(
    path: Path, writer: BinaryIO, parts: list[bytes]
) -> None:
    path.write_bytes(b"one\n")
    with (
        closing(FileSource(path, to_end=True)) as file,
        closing(FileSource(STANDARD_INPUT, to_end=True)) as source,
    ):
        source.poll(0)
        source.seek(0, None)
        for part in parts:
            assert source.log_id(0) is None or part == b"two\n"
            writer.write(part)
            source.poll(0)
        assert source.log_id(0) == file.log_id(0) is not None


@pytest.mark.usefixtures("short_seek")
def test_a_pipe_that_has_repeated_nothing_yet_holds_nothing_up(writer: BinaryIO) -> None:
    with closing(FileSource(STANDARD_INPUT, to_end=True)) as source:
        source.poll(0)
        assert source.seek(0, 2) == 2
        assert not source.poll(0).records
        assert not source.caught_up(0)
        writer.write(b"one\ntwo\nthree\n")
        assert [(it.offset, it.value) for it in source.poll(0).records[0]] == [(2, b"three")]


@pytest.mark.parametrize(("to_end", "why"), [(True, ""), (False, "standard input has ended")])
def test_standard_input_that_has_ended_brings_nothing_more(
    writer: BinaryIO, to_end: bool, why: str
) -> None:
    """To `run --until-end`, its end is no fault."""
    with closing(FileSource(STANDARD_INPUT, to_end=to_end)) as source:
        source.poll(0)
        source.seek(0, None)
        assert not source.poll(0).unreadable
        writer.write(b"one\ntwo")
        assert not source.poll(0).unreadable
        writer.close()
        last = source.poll(0)
        assert ([each.value for each in last.records[0]], last.unreadable) == ([b"two"], why)
        assert source.poll(0).unreadable == source.poll(0, hold=True).unreadable == why


def test_standard_input_must_repeat_the_lines_before_a_restart(writer: BinaryIO) -> None:
    with closing(FileSource(STANDARD_INPUT, to_end=True)) as source:
        source.poll(0)
        writer.write(b"one\ntwo\n")
        writer.close()
        needs = r"^standard input has 2 lines, but a restart reads it again from line 4 on: repeat "
        with pytest.raises(ConnectorError, match=needs):
            source.seek(0, 3)


def test_a_file_of_the_name_of_standard_input_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: BinaryIO
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-").write_bytes(b"a mistake in a shell\n")
    writer.write(b"one\n")
    with closing(FileSource(STANDARD_INPUT, to_end=True)) as source:
        assert source.log_id(0) is None
        source.poll(0)
        source.seek(0, None)
        assert [each.value for each in source.poll(0).records[0]] == [b"one"]
