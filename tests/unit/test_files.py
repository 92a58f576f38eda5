"""Files are written atomically, and obstacles are named before and after."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from streamduel.errors import StreamduelError
from streamduel.files import identity, kind, obstacle, write_json, write_whole


def test_json_is_written_atomically(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 0.1})
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(path, {"a": math.nan})
    assert json.loads(path.read_text()) == {"a": 0.1}
    assert list(tmp_path.iterdir()) == [path]
    write_json(Path("/dev/null"), {"a": 1})
    assert Path("/dev/null").is_char_device()


def test_a_rewritten_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"first")
    path.chmod(0o600)
    write_whole(path, b"second")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/dev/full", "No space left on device"),
        ("/proc/x.json", "No such file or directory"),
        ("none/x.json", "No such file or directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_failed_write_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StreamduelError) as error:
        write_whole(Path(path), b"content")
    assert str(error.value) == f"'{path}' cannot be written ({why})."
    assert obstacle(Path(path)) == ("" if path == "/dev/full" else why)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StreamduelError, match="No space left on device"):
        write_whole(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_obstacle_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert obstacle(path) == ""
    assert not list(tmp_path.iterdir())
    path.write_text("old")
    assert obstacle(path) == ""
    assert path.read_text() == "old"
    os.mkfifo(tmp_path / "pipe")
    assert obstacle(tmp_path / "pipe") == ""  # without waiting for a reader


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "x.json", tmp_path / "real" / "y.json"
    link.symlink_to(target)
    for content in (b"first", b"second"):
        write_whole(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert identity(link) == identity(tmp_path / "real" / ".." / "real" / "y.json")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "real", target, link]


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    assert kind(tmp_path / "file") == "a file"
    assert kind(tmp_path) == "a directory"
    assert kind(Path("/dev/null")) == "a device or a pipe"
    assert kind(tmp_path / "loop") == kind(tmp_path / "none") == "nothing"
