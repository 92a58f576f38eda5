"""The command line in this process, and a folder in which the service has run."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from streamduel.cli import app as cli
from streamduel.simulation.matrices import ARXIV
from tests.unit.cli.commands import (
    HALF,
    LOG,
    Result,
    Streamduel,
    configure,
    run,
)


@pytest.fixture
def streamduel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Streamduel:
    """The command line in this process, except `run`, which installs signal handlers."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr("sys.argv", ["streamduel", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """The folder of a service that has folded the first half of its click log."""
    config = configure(tmp_path)
    (tmp_path / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG[:HALF]))
    assert run(config, "--until-end").status == 0
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the service has folded a click log to its end; do not change it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG))
    result = run(configure(folder), "--until-end")
    assert result.status == 0, result.err
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of the folder, which a test may change."""
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """The file of a preference matrix."""
    path = tmp_path / "arxiv.txt"
    np.savetxt(path, ARXIV, fmt="%.2f")
    return path
