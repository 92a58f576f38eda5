"""The files of `streamduel simulate`: no other file is changed, and no result is lost."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.commands import COMMAND, SECONDS, Streamduel


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--json", "arxiv.txt"], "--matrix and --json must name different files (found 'arxiv"),
        (["--json", "./no/../arxiv.txt"], "--matrix and --json must name different files"),
        (["--json", "link"], "--matrix and --json must name different files (found 'link' for"),
        (["--plot", "p.png"], "--change and --plot must name different files (found 'p.png' for"),
        (["--journal", "p.png"], "--change and --journal must name different files (found 'p."),
        (["--json", "r.png", "--plot", "r.png"], "--json and --plot must name different files"),
        (["--json", "r", "--journal", "r"], "--json and --journal must name different files"),
        (["--plot", "r.png", "--plot", "./r.png"], "--plot and --plot must name different files"),
    ],
)
def test_no_file_is_written_that_another_option_names(
    streamduel: Streamduel,
    matrix: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(matrix.parent)
    Path("p.png").write_bytes(matrix.read_bytes())
    Path("no").mkdir()
    Path("link").symlink_to("arxiv.txt")
    before = {path: path.read_bytes() for path in (matrix, Path("p.png"))}
    said = streamduel(
        "simulate", "--matrix", "arxiv.txt", "--policy", "rucb", "--horizon", 20, "--jobs", 1,
        "--change", "10:p.png", *options,
    )  # fmt: skip
    assert said.status == 2
    assert said.err.startswith(f"streamduel: {sentence}")
    assert said.err.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(path.name for path in Path().iterdir()) == ["arxiv.txt", "link", "no", "p.png"]


def test_a_file_may_be_read_twice_but_a_time_named_once(
    streamduel: Streamduel, matrix: Path
) -> None:
    options = ["--matrix", matrix, "--policy", "rucb", "--horizon", 30, "--runs", 1, "--jobs", 1]
    said = streamduel("simulate", *options, "--change", f"10:{matrix}", "--change", f"20:{matrix}")
    assert said.status == 0, said.err
    said = streamduel("simulate", *options, "--change", f"10:{matrix}", "--change", f"1e1:{matrix}")
    assert said.status == 2
    assert "--change must be given once for each T (found 10 for" in said.err


@pytest.mark.parametrize("content", ["precious", "precious\n", '{"journal": 1}'])
def test_a_file_that_is_not_a_journal_is_not_changed(
    streamduel: Streamduel, matrix: Path, content: str
) -> None:
    notes = matrix.with_name("notes.txt")
    notes.write_text(content)
    said = streamduel("simulate", "--matrix", matrix, "--policy", "rucb", "--journal", notes)
    assert said.status == 2
    assert (
        "notes.txt' is not a journal of a simulation; name another file with --journal." in said.err
    )
    assert notes.read_text() == content


def test_a_failed_write_at_the_end_is_one_sentence(
    streamduel: Streamduel, matrix: Path, tmp_path: Path
) -> None:
    said = streamduel(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--horizon", 100, "--runs", 2, "--jobs",
        1, "--json", "/dev/full", "--plot", tmp_path / "r.png", "--journal", tmp_path / "j",
    )  # fmt: skip
    assert said.status == 1
    assert "rucb" in said.out
    assert said.err == (
        "streamduel: '/dev/full' cannot be written (No space left on device); the finished runs are"
        f" kept in '{tmp_path / 'j'}', and the same command tries again.\n"
    )
    assert (tmp_path / "r.png").stat().st_size > 1000
    assert len((tmp_path / "j").read_bytes().splitlines()) == 3


def test_a_full_disk_keeps_what_is_finished(
    streamduel: Streamduel, matrix: Path, tmp_path: Path
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    journal, report = tmp_path / "j", tmp_path / "r.json"
    arguments = [
        "simulate", "--matrix", str(matrix), "--policy", "uniform", "--horizon", "500", "--runs",
        "20", "--jobs", "1", "--journal", str(journal),
    ]  # fmt: skip
    # Python does not notice that the limit truncates a compiled module.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True, text=True, timeout=SECONDS, preexec_fn=limit, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert "uniform" in done.stdout
    assert done.stderr == (
        f"streamduel: the journal '{journal}' cannot be written (File too large); its finished"
        " runs are kept, and the same command resumes from there.\n"
    )
    assert journal.read_bytes().count(b"\n") > 2
    said = streamduel(*arguments, "--json", report)
    assert said.status == 0, said.err
    assert json.loads(report.read_text())["runs"] == 20
    assert sorted(tmp_path.iterdir()) == [matrix, report]


def test_json_may_go_through_a_link(streamduel: Streamduel, matrix: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("r.json")  # as /dev/stdout is one to /proc/self/fd/1
    said = streamduel(
        "simulate", "--matrix", matrix, "--policy", "rucb", "--horizon", 100, "--runs", 2,
        "--jobs", 1, "--json", link,
    )  # fmt: skip
    assert said.status == 0, said.err
    assert link.is_symlink()
    assert json.loads((tmp_path / "r.json").read_text())["runs"] == 2
