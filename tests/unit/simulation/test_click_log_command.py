"""`python -m streamduel.simulation.click_log`, as the Makefile calls it."""

import subprocess
import sys
from pathlib import Path

from streamduel.simulation.click_log import write_click_log


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamduel.simulation.click_log", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_writes_the_log_and_names_the_best_ranker(tmp_path: Path) -> None:
    path, expected = tmp_path / "clicks.jsonl", tmp_path / "expected.jsonl"
    done = run(str(path), "--records", "1000", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "Wrote 1,000 lines" in done.stderr
    assert "10 duplicates, 2 broken lines" in done.stderr
    assert "'ltr-v3'" in done.stderr
    write_click_log(expected, 1000, 3)
    assert path.read_bytes() == expected.read_bytes()


def test_a_wrong_number_is_refused(tmp_path: Path) -> None:
    done = run(str(tmp_path / "clicks.jsonl"), "--records", "0")
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())
