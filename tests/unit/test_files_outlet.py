"""Outputs and snapshots in files, when something is in the way."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from streamduel.connector import Message, PartitionCommit
from streamduel.errors import ConnectorError
from streamduel_files.outlet import ASSIGNMENTS, DEAD_LETTERS, SNAPSHOT, FileArchive, FileOutlet


def commit(outlet: FileOutlet, offset: int) -> None:
    commits = [PartitionCommit(0, offset, [Message(None, b"{}")], [], {})]
    outlet.write(commits)
    outlet.finish(commits)


@pytest.mark.parametrize("name", [ASSIGNMENTS, DEAD_LETTERS])
def test_an_output_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out" / name
    path.mkdir(parents=True)
    with closing(FileOutlet(tmp_path / "new", tmp_path / "state")):
        pass  # a snapshot, so that the outputs are opened
    with pytest.raises(ConnectorError) as caught:
        FileOutlet(tmp_path / "out", tmp_path / "state")
    assert str(caught.value) == f"{path} cannot be written to: Is a directory."
    path.rmdir()
    FileOutlet(tmp_path / "out", tmp_path / "state").close()  # no lock is left


def test_a_first_snapshot_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = (tmp_path / SNAPSHOT).with_suffix(".new")
    path.mkdir()
    with pytest.raises(ConnectorError) as caught:
        FileOutlet(tmp_path / "out", tmp_path)
    assert str(caught.value) == f"{path} cannot be written to: Is a directory."


def test_without_a_file_the_error_names_the_folder_of_the_snapshots(tmp_path: Path) -> None:
    (tmp_path / SNAPSHOT).with_suffix(".new").symlink_to("/dev/full")
    with pytest.raises(ConnectorError) as caught:
        FileOutlet(tmp_path / "out", tmp_path)
    assert str(caught.value) == f"{tmp_path} cannot be written to: No space left on device."


def test_assignments_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with closing(FileOutlet(tmp_path, tmp_path)) as outlet:
        commit(outlet, 1)
    path = tmp_path / ASSIGNMENTS
    path.unlink()
    path.mkdir()
    with pytest.raises(ConnectorError) as caught:
        list(FileArchive(tmp_path, tmp_path).published())
    assert str(caught.value) == f"{path} cannot be read: Is a directory."


def rotate(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".1"))
    path.unlink()
    path.with_suffix(".1").rename(path)


@pytest.mark.parametrize("content", [b"{", b"{}\n{}\n{}\n"])
@pytest.mark.parametrize("name", [ASSIGNMENTS, DEAD_LETTERS])
def test_nothing_is_committed_to_a_file_that_another_program_changes(
    tmp_path: Path, name: str, content: bytes
) -> None:
    with closing(FileOutlet(tmp_path, tmp_path)) as outlet:
        commit(outlet, 1)
        commit(outlet, 2)
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConnectorError, match="another program has changed it; restore it"):
            commit(outlet, 3)
    (tmp_path / name).write_bytes(kept)
    with closing(FileOutlet(tmp_path, tmp_path)) as outlet:
        found = outlet.load(0)
        assert found is not None
        assert found.next_offset == 2
        commit(outlet, 3)


@pytest.mark.parametrize("remove", [Path.unlink, rotate])
@pytest.mark.parametrize("name", [ASSIGNMENTS, DEAD_LETTERS])
def test_nothing_is_committed_to_a_file_that_no_reader_finds(
    tmp_path: Path, name: str, remove: Callable[[Path], None]
) -> None:
    with closing(FileOutlet(tmp_path, tmp_path)) as outlet:
        commit(outlet, 1)
        remove(tmp_path / name)
        with pytest.raises(ConnectorError) as caught:
            commit(outlet, 2)
        found = FileArchive(tmp_path, tmp_path).load(0)
        assert found is not None
        assert found.next_offset == 1
    assert str(caught.value) == (
        f"{tmp_path / name} was moved or removed while streamduel writes to it; bring it back, and "
        f"the next start continues from the last commit."
    )


@pytest.mark.parametrize("spelling", ["out", "link", "absent/../out"])
def test_one_folder_in_two_spellings_is_locked_once(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("absent").mkdir()
    Path("out").mkdir()
    Path("link").symlink_to("out")
    with closing(FileOutlet(Path(spelling), tmp_path / "out")) as outlet:
        commit(outlet, 1)
        with pytest.raises(ConnectorError, match="another streamduel writes to"):
            FileOutlet(tmp_path / "out", tmp_path / "state")


def test_refused_outputs_leave_no_folder_locked(tmp_path: Path) -> None:
    with closing(FileOutlet(tmp_path / "out", tmp_path / "one")):
        with pytest.raises(ConnectorError, match="another streamduel writes to"):
            FileOutlet(tmp_path / "out", tmp_path / "two")
        gc.collect()  # would warn of a file that was left to it
        FileOutlet(tmp_path / "other", tmp_path / "two").close()
