"""`kill -9` on files: whatever the moment, the bytes are those of an undisturbed run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

from tests.faults.lives import hashes, inspect, live, streamduel
from tests.logs import ARMS, values

KILLS = 20
RECORDS = 500_000
EXPERIMENTS = [f"experiment-{number}" for number in range(6)]


def configure(folder: Path, log: Path) -> Path:
    """A configuration with its own outputs over a shared log; commits as often as it can."""
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


@pytest.mark.slow
def test_twenty_kills_at_random_moments_leave_no_trace(tmp_path: Path) -> None:
    log = write_log(tmp_path / "clicks.jsonl", RECORDS)
    calm, stormy = configure(tmp_path / "calm", log), configure(tmp_path / "stormy", log)
    assert not live(calm)
    rng = random.Random(20)
    kills = sum(live(stormy, seconds=rng.uniform(0.0, 0.06)) for _ in range(KILLS))
    assert kills == KILLS, "the log was at its end before the last kill"
    assert not live(stormy)
    assert visible(stormy) == visible(calm)
    replayed = streamduel("replay", stormy)
    assert replayed.returncode == 0, replayed.stdout


STEPS = [
    "before write", "files: assignments appended", "files: outputs appended",
    "files: outputs synced", "files: snapshot written", "before finish", "files: snapshot renamed",
    "after finish",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_a_step_of_the_commit_leaves_no_trace(tmp_path: Path, step: str) -> None:
    log = write_log(tmp_path / "clicks.jsonl", 20_000)
    calm, stormy = configure(tmp_path / "calm", log), configure(tmp_path / "stormy", log)
    assert not live(calm)
    assert [live(stormy, step=step, times=times) for times in (1, 2, 1)] == [True, True, True]
    assert not live(stormy)
    assert visible(stormy) == visible(calm)


def test_a_tampered_assignment_is_found_by_replay(tmp_path: Path) -> None:
    config = configure(tmp_path / "calm", write_log(tmp_path / "clicks.jsonl", 5000))
    assert not live(config)
    path = config.parent / "out" / "assignments.jsonl"
    lines = path.read_text().splitlines()
    forged = json.loads(lines[100])
    forged["champion"] = "hybrid" if forged["champion"] != "hybrid" else "dense"
    text = json.dumps(forged, separators=(",", ":")).ljust(len(lines[100]))
    lines[100] = text[: len(lines[100])]
    path.write_text("\n".join(lines) + "\n")
    replayed = streamduel("replay", config)
    assert replayed.returncode == 1
    assert f"epoch {forged['epoch']} of '{forged['experiment']}' differs" in replayed.stdout
