"""Configurations and click logs in files, and what runs on them make visible."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.faults.processes import hashes, inspect
from tests.logs import ARMS, values

POLICY = {"name": "rucb"}
"""A policy without an end, so that there are assignments to compare all the time."""

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
            name: {"arms": list(ARMS), "policy": POLICY, "decide_every": 20, "seed": seed}
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
