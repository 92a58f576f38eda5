"""SIGKILL on files: at any moment, the bytes are those of an undisturbed run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

from tests.faults.processes import hashes, inspect, run_service, streamduel
from tests.logs import ARMS, values

KILLS = 20
RECORDS = 250_000
EXPERIMENTS = [f"experiment-{number}" for number in range(6)]


def configure(folder: Path, log: Path) -> Path:
    """A configuration with its own outputs over a shared click log; commits very often."""
    folder.mkdir()
    document = {
        "source": {"connector": "files", "path": str(log)},
        "sink": {"connector": "files", "path": "out"},
        "snapshots": {"connector": "files", "path": "state"},
        "commit": {"interval_ms": 5},
        "dedupe": {"window_records": 20_000, "window_ms": 3_600_000},
        "monitoring": None,
        "experiments": {
            name: {"arms": list(ARMS), "decide_every": 20, "seed": seed}
            for seed, name in enumerate(EXPERIMENTS)
        },
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def write_log(path: Path, records: int) -> Path:
    lines = (value.replace(b"\n", b" ") for _, value in values(1, records, EXPERIMENTS))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def visible(config: Path) -> tuple[bytes, bytes, dict[str, str]]:
    """What readers see: both outputs byte for byte, and every experiment's state hash."""
    out = config.parent / "out"
    return (
        (out / "assignments.jsonl").read_bytes(),
        (out / "dead_letters.jsonl").read_bytes(),
        hashes(inspect(config)),
    )


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
def test_twenty_kills_at_random_moments_change_nothing(
    log: Path, undisturbed: Path, tmp_path: Path
) -> None:
    killed = configure(tmp_path / "killed", log)
    rng = random.Random(20)
    kills = sum(run_service(killed, seconds=rng.uniform(0.0, 0.06)) for _ in range(KILLS))
    assert kills == KILLS, "the end of the click log was reached before the last kill"
    assert not run_service(killed)
    assert visible(killed) == visible(undisturbed)
    replayed = streamduel("replay", killed)
    assert replayed.returncode == 0, replayed.stdout


STEPS = [
    "before write", "files: assignments appended", "files: outputs appended",
    "files: outputs synced", "files: snapshot written", "before finish", "files: snapshot renamed",
    "after finish",
]  # fmt: skip


@pytest.mark.slow
def test_a_kill_at_any_step_of_the_commit_changes_nothing(
    log: Path, undisturbed: Path, tmp_path: Path
) -> None:
    killed = configure(tmp_path / "killed", log)
    for step in STEPS:
        for times in (1, 2, 1):
            assert run_service(killed, step=step, times=times), step
    assert not run_service(killed)
    assert visible(killed) == visible(undisturbed)


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
