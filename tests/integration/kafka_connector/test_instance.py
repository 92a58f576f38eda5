"""The name of a process in its group."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from structlog.typing import EventDict

from streamduel_kafka import instance
from streamduel_kafka.instance import Instance

HOLD = """
import sys, time
from streamduel_kafka.instance import Instance
held = Instance(None, sys.argv[1])
print(held.name, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("socket.gethostname", lambda: "node 7.example")


def test_a_process_gets_the_first_free_slot() -> None:
    with Instance(None, "x") as first, Instance(None, "x") as second:
        assert (first.name, second.name) == ("node-7.example-0", "node-7.example-1")
        with Instance(None, "another group") as other:
            assert other.name == "node-7.example-0"
        first.close()
        with Instance(None, "x") as third:
            assert third.name == "node-7.example-0"


def test_a_configured_name_is_used_as_it_is(tmp_path: Path) -> None:
    with Instance("mine", "x") as first, Instance("mine", "x") as second:
        assert first.name == second.name == "mine"
    assert not list(tmp_path.iterdir())


def test_a_killed_process_frees_its_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    command = [sys.executable, "-c", HOLD, "x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().endswith("-0\n")
        with Instance(None, "x") as second:
            assert second.name.endswith("-1")
        holder.kill()
        holder.wait()
    with Instance(None, "x") as again:
        assert again.name.endswith("-0")


def test_a_lock_file_in_use_does_not_grow_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems delete old files of the temporary directory, and the name would be free."""
    with Instance(None, "x") as held:
        (file,) = tmp_path.iterdir()
        os.utime(file, (0, 0))
        held.keep()
        assert file.stat().st_mtime == 0  # not with every call
        monkeypatch.setattr(instance, "TOUCH_SECONDS", 0.0)
        held.keep()
        assert file.stat().st_mtime > 0
        assert file.stat().st_atime > 0
    held.keep()


def test_without_lock_files_every_process_is_number_zero(
    monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with Instance(None, "x") as first, Instance(None, "x") as second:
        assert first.name == second.name == "node-7.example-0"
    assert [line["event"] for line in logged] == ["lock file impossible"] * 2
    assert logged[0]["directory"] == "/nowhere"


def test_without_a_temporary_directory_every_process_is_number_zero(
    monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    """As in a container with a read-only root and no /tmp."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    with Instance(None, "x") as first, Instance(None, "x") as second:
        assert first.name == second.name == "node-7.example-0"
    assert [line["event"] for line in logged] == ["lock file impossible"] * 2
    assert logged[0]["directory"] is None
    assert "No usable temporary directory" in logged[0]["error"]
    assert "source.instance" in logged[0]["advice"]


def test_the_lock_of_another_user_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = instance._lock

    def refuse_first(path: Path) -> int | None:
        if path.name.endswith("-0.lock"):
            raise PermissionError(13, "Permission denied")
        return lock(path)

    monkeypatch.setattr(instance, "_lock", refuse_first)
    with Instance(None, "x") as ours:
        assert ours.name == "node-7.example-1"
