"""The wheel of streamduel-client works in an environment with nothing but msgspec."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.client.bed import record

ROOT = Path(__file__).parents[3]

ROUND_TRIP = """
import importlib.util, sys
import streamduel
from streamduel.client import Assignments, EventLog, Interleaver
from streamduel.errors import InterleavingError

for name in ("numpy", "pydantic", "kafka", "starlette", "typer"):
    assert importlib.util.find_spec(name) is None, name
assert "site-packages" in streamduel.__file__
with Assignments.from_file("assignments.jsonl") as assignments:
    assert assignments.wait_for("search", 30)
    draw = assignments.draw("search", sticky_key="session 1")
with EventLog.to_file("clicks.jsonl") as events:
    for method in ("team_draft", "balanced", "probabilistic"):
        shown = Interleaver(method).merge(draw, ["d1", "d2", "d3"], ["d3", "d1", "d4"], "search 1")
        impression = events.impression("search", draw, shown)
        events.click("search", impression, rank=0)
try:
    Interleaver("optimised")
except InterleavingError as error:
    print(error)
for start in (Assignments.from_kafka, EventLog.to_kafka):
    try:
        start("localhost:9092")
    except streamduel.errors.ClientError as error:
        print(error)
"""


def run(*command: str | Path, cwd: Path) -> str:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, "./client", cwd=ROOT)
    (built,) = folder.glob("streamduel_client-*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_closes_the_loop_with_msgspec_alone(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    (tmp_path / "assignments.jsonl").write_text(record() + "\n")
    printed = run(python, "-I", "-c", ROUND_TRIP, cwd=tmp_path).splitlines()
    assert [line.partition(";")[0] for line in printed] == [
        "optimised interleaving needs scipy",
        "assignments from Kafka need kafka-python",
        "a click log on Kafka needs kafka-python",
    ]
    lines = (tmp_path / "clicks.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert lines[0].startswith('{"type":"impression"')


def test_the_wheel_is_part_of_the_source_tree(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        for name in names:
            assert archive.read(name) == (ROOT / name).read_bytes()
    rooms = {"/".join(name.split("/")[:2]) for name in names}
    assert rooms == {
        "streamduel/__init__.py", "streamduel/client", "streamduel/errors.py",
        "streamduel/interleaving", "streamduel/kafka_batches.py", "streamduel/kafka_clients.py",
        "streamduel/kafka_codecs.py", "streamduel/preference", "streamduel/py.typed",
        "streamduel/record_rules.py", "streamduel/records.py",
    }  # fmt: skip
    client = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("streamduel/client/*.py")}
    assert client <= set(names)
