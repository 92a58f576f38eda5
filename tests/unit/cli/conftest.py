"""A folder in which the service has run, and the command line in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from streamduel.cli import app as cli
from tests.unit.cli.bed import (
    LOG,
    Said,
    Streamduel,
    configure,
    run,
)


@pytest.fixture
def streamduel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Streamduel:
    """The command line, in this process: all but `run`, which listens to signals."""

    def call(*arguments: object) -> Said:
        monkeypatch.setattr("sys.argv", ["streamduel", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the service has folded a log to its end; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG))
    said = run(configure(folder), "--until-end")
    assert said.status == 0, said.err
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return shutil.copytree(finished, tmp_path / "copy")
