from pathlib import Path

import pytest

from streamduel.client import Assignments, Draw, file_feed
from streamduel.client.file_feed import FileFeed
from tests.unit.client.bed import alone, eventually


def values(feed: FileFeed) -> list[bytes | str]:
    return [news.value for news in feed.poll()]


def test_lines_are_read_once_and_only_when_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\ntwo\nthr")
    feed = FileFeed(path)
    assert values(feed) == [b"one", b"two"]
    assert values(feed) == []
    with path.open("a") as file:
        file.write("ee\nfour\n")
    assert values(feed) == [b"three", b"four"]


def test_a_line_may_be_longer_than_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_feed, "CHUNK_BYTES", 4)
    path = tmp_path / "assignments.jsonl"
    path.write_text("a line of many chunks\nand another\n")
    assert values(FileFeed(path)) == [b"a line of many chunks", b"and another"]


def test_a_file_that_was_cut_short_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\ntwo\nthr")
    feed = FileFeed(path)
    assert values(feed) == [b"one", b"two"]
    path.write_text("one\n")
    assert values(feed) == [b"one"]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "assignments.jsonl", tmp_path / "other"
    path.write_text("one\n")
    feed = FileFeed(path)
    assert values(feed) == [b"one"]
    other.write_text("uno\ndue\n")
    other.replace(path)
    assert values(feed) == [b"uno", b"due"]


def test_news_are_as_old_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text("one\n")
    assert [news.at for news in FileFeed(path).poll()] == [path.stat().st_mtime]


def test_the_file_may_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamduel.client.follower.FIRST_PAUSE", 0.01)
    monkeypatch.setattr(FileFeed, "every", 0.01)
    path = tmp_path / "assignments.jsonl"
    with Assignments.from_file(path, defaults={"search": "bm25"}) as assignments:
        assert assignments.draw("search") == Draw("bm25", "bm25", None)
        path.write_text(alone("ltr", 1) + "\n")
        eventually(lambda: assignments.draw("search") == Draw("ltr", "ltr", 1))
