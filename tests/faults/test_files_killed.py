"""SIGKILL on files: at any moment, the bytes are those of an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.figures import Figures
from tests.faults.files_runs import configure, visible, write_log
from tests.faults.processes import ROOT, RUN, run_service, streamduel
from tests.faults.scale import scaled

KILLS = scaled(20, 10)
RECORDS = scaled(250_000, 150_000)

Report = Callable[[Figures], None]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "clicks.jsonl", RECORDS)


@pytest.fixture(scope="module")
def undisturbed(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a run that was not killed."""
    config = configure(tmp_path_factory.mktemp("runs") / "undisturbed", log)
    assert not run_service(config)
    return config


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(
    log: Path, undisturbed: Path, tmp_path: Path, report: Report
) -> None:
    killed = configure(tmp_path / "killed", log)
    rng = random.Random(20)
    kills = sum(run_service(killed, seconds=rng.uniform(0.0, 0.06)) for _ in range(KILLS))
    assert kills == KILLS, "the end of the click log was reached before the last kill"
    assert not run_service(killed)
    assert visible(killed) == visible(undisturbed)
    replayed = streamduel("replay", killed)
    assert replayed.returncode == 0, replayed.stdout
    report(Figures("files: `kill -9` at random moments", RECORDS, KILLS, 0, 0))


LIMITS = (200, 300, 1000)
"""Kilobytes that a file may have; the outputs have some megabytes."""

STEPS = [
    "before write", "files: assignments appended", "files: outputs appended",
    "files: outputs synced", "files: snapshot written", "before finish", "files: snapshot renamed",
    "after finish",
]  # fmt: skip


@pytest.mark.slow
def test_a_kill_at_any_step_of_the_commit_changes_nothing(
    log: Path, undisturbed: Path, tmp_path: Path, report: Report
) -> None:
    killed = configure(tmp_path / "killed", log)
    for step in STEPS:
        for times in (1, 2, 1):
            assert run_service(killed, step=step, times=times), step
    assert not run_service(killed)
    assert visible(killed) == visible(undisturbed)
    fault = "files: `kill -9` between every two steps of a commit"
    report(Figures(fault, RECORDS, 3 * len(STEPS), 0, 0))


@pytest.mark.slow
def test_a_full_disk(log: Path, undisturbed: Path, tmp_path: Path, report: Report) -> None:
    """The limit of a file's size refuses a write as a full disk does, without root."""
    full = configure(tmp_path / "full", log)
    # Python does not notice that the limit truncates a compiled module.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for kilobytes in LIMITS:
        limited = ["sh", "-c", 'ulimit -f "$0" && exec "$@"', str(2 * kilobytes), *RUN]
        done = subprocess.run(
            [*limited, str(full), "--until-end"],
            cwd=ROOT, capture_output=True, text=True, env=environment,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert "cannot be written" in done.stderr
    assert not run_service(full)
    assert visible(full) == visible(undisturbed)
    note = "each ends with status 1 and a sentence; with space, it continues"
    report(Figures("files: the disk is full", RECORDS, len(LIMITS), 0, 0, (), note))


def test_replay_finds_a_changed_assignment(tmp_path: Path) -> None:
    config = configure(tmp_path / "run", write_log(tmp_path / "clicks.jsonl", 5000))
    assert not run_service(config)
    path = config.parent / "out" / "assignments.jsonl"
    lines = path.read_text().splitlines()
    changed = json.loads(lines[100])
    changed["champion"] = "hybrid" if changed["champion"] != "hybrid" else "dense"
    text = json.dumps(changed, separators=(",", ":")).ljust(len(lines[100]))
    lines[100] = text[: len(lines[100])]
    path.write_text("\n".join(lines) + "\n")
    replayed = streamduel("replay", config)
    assert replayed.returncode == 1
    assert f"epoch {changed['epoch']} of '{changed['experiment']}' differs" in replayed.stdout
