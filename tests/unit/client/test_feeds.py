import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamduel.client import Assignments, Draw, FeedRecord, feeds
from streamduel.client.feeds import FileFeed
from tests.unit.client.bed import PATIENCE, alone, eventually


def values(feed: FileFeed) -> list[bytes | str]:
    return [record.value for record in feed.poll()]


def test_complete_lines_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\ntwo\nthr")
    feed = FileFeed(path)
    assert values(feed) == [b"one", b"two"]
    assert values(feed) == []
    with path.open("a") as file:
        file.write("ee\nfour\n")
    assert values(feed) == [b"three", b"four"]


def test_a_line_may_be_longer_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "CHUNK_BYTES", 4)
    path = tmp_path / "assignments.jsonl"
    path.write_text("a line of many chunks\nand another\n")
    assert values(FileFeed(path)) == [b"a line of many chunks", b"and another"]


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\ntwo\nthr")
    feed = FileFeed(path)
    assert values(feed) == [b"one", b"two"]
    path.write_text("one\n")
    assert values(feed) == [b"one"]


def test_a_replaced_file_is_read_from_its_start(tmp_path: Path) -> None:
    path, other = tmp_path / "assignments.jsonl", tmp_path / "other"
    path.write_text("one\n")
    feed = FileFeed(path)
    assert values(feed) == [b"one"]
    other.write_text("uno\ndue\n")
    other.replace(path)
    assert values(feed) == [b"uno", b"due"]


def test_a_new_file_with_the_inode_of_the_deleted_one_is_read_from_its_start(
    tmp_path: Path,
) -> None:
    path, kept = tmp_path / "assignments.jsonl", tmp_path / "kept"
    path.write_text("one\n")
    feed = FileFeed(path)
    assert values(feed) == [b"one"]
    path.rename(kept)
    with pytest.raises(FileNotFoundError):
        values(feed)
    kept.write_text("uno\ndue\n")
    kept.rename(path)
    assert values(feed) == [b"uno", b"due"]


def test_records_have_the_time_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\n")
    assert [record.at for record in FileFeed(path).poll()] == [path.stat().st_mtime]


def test_the_file_may_be_created_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamduel.client.feeds.FIRST_PAUSE", 0.01)
    monkeypatch.setattr(FileFeed, "every", 0.01)
    path = tmp_path / "assignments.jsonl"
    with Assignments.from_file(path, defaults={"search": "bm25"}) as assignments:
        assert assignments.draw("search") == Draw("bm25", "bm25", None)
        path.write_text(alone("ltr", 1) + "\n")
        eventually(lambda: assignments.draw("search") == Draw("ltr", "ltr", 1))


class Shaky:
    """A feed with planned failures; each further poll gives the next epoch."""

    every = 0.001

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.epochs = itertools.count(1)
        self.polled_by: set[str] = set()
        self.closed = threading.Event()

    def poll(self) -> Iterator[FeedRecord]:
        self.polled_by.add(threading.current_thread().name)
        if self.failures:
            raise self.failures.pop()
        yield FeedRecord(alone("x", next(self.epochs)))

    def close(self) -> None:
        assert threading.current_thread().name == "streamduel-follower"
        self.closed.set()


def test_failed_polls_are_retried_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeds, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(feeds, "MAX_PAUSE", 0.02)
    caplog.set_level("INFO", "streamduel.client.feeds")
    feed = Shaky(OSError(), ValueError("third"), OSError("second"), OSError("first"))
    pauses: list[float] = []
    wait = threading.Event.wait

    def waited(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "streamduel-follower":
            pauses.append(timeout or 0)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", waited)
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        eventually(lambda: len(pauses) >= 6)
    assert pauses[:6] == [0.01, 0.02, 0.02, 0.02, 0.001, 0.001]
    messages = [each.getMessage() for each in caplog.records]
    assert [message.rpartition(": ")[2] for message in messages[:4]] == [
        "first", "second", "third", "OSError"
    ]  # fmt: skip
    assert messages[4:] == ["assignments can be read again"]


def test_a_feed_that_fails_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "assignments.jsonl"
    with Assignments.from_file(path):
        eventually(lambda: bool(caplog.messages))
    assert caplog.messages[0].startswith(f"assignments of {path} cannot be read, the last ones")


def test_while_a_feed_fails_the_last_assignment_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "FIRST_PAUSE", 0.001)
    feed = Shaky()
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        feed.failures = [OSError("gone")] * 3
        eventually(lambda: not feed.failures)
        assert assignments.draw("search")[:2] == ("x", "x")


def test_a_feed_is_used_and_closed_by_one_thread() -> None:
    feed = Shaky()
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        assert not feed.closed.is_set()
    assert feed.closed.is_set()
    assert feed.polled_by == {"streamduel-follower"}


class Endless(Shaky):
    """A feed of infinitely many records."""

    def poll(self) -> Iterator[FeedRecord]:
        for epoch in self.epochs:
            yield FeedRecord(alone("x", epoch))


def test_close_does_not_wait_for_the_end_of_a_long_topic() -> None:
    with Assignments(feed := Endless()) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        eventually(lambda: assignments.draw("search") > Draw("x", "x", 10))
    assert feed.closed.is_set()
