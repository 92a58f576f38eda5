"""The service in a container with a read-only root, no capabilities and no network."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.image.container import Container, Containers
from tests.image.engine import ROOT, Start
from tests.logs import ARMS, values
from tests.unit.config.configurations import GOOD, changed

CONFIG: Final = "/etc/streamduel/config.yaml"
DATA: Final = "/data"
RECORDS: Final = 2000
ASK: Final = (
    "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=4).read().decode())"
)


@pytest.fixture
def data(containers: Containers, tmp_path: Path) -> Iterator[Path]:
    """A folder with a click log that the container may write to."""
    folder = tmp_path / "data"
    folder.mkdir()
    log = b"".join(value + b"\n" for _, value in values(21, RECORDS, poison=0.0))
    (folder / "clicks.jsonl").write_bytes(log)
    folder.chmod(0o777)  # only root could change the owner instead
    yield folder
    # The container owns its files, so pytest could not remove them.
    made = Start(entrypoint=["rm", "-rf"], command=[f"{DATA}/out", f"{DATA}/state"],
                 mounts={DATA: folder}, writable=[DATA])  # fmt: skip
    status, said = containers.run(made)
    assert status == 0, said


def service(tmp_path: Path, data: Path, changes: Mapping[str, Any] | None = None) -> Start:
    """The start of the service on that click log."""
    settings = {
        "source.path": f"{DATA}/clicks.jsonl",
        "sink.path": f"{DATA}/out",
        "snapshots.path": f"{DATA}/state",
        "experiments.search.arms": list(ARMS),
        # Longer than the test: only the stop commits.
        "commit": {"interval_ms": 60_000},
        "monitoring": {},
        **(changes or {}),
    }
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(changed(settings, GOOD)), encoding="utf-8")
    return Start(mounts={CONFIG: config, DATA: data}, writable=[DATA])


def asked(container: Container, path: str) -> str:
    """The answer of the monitoring port, asked from inside; empty on failure."""
    return container.execute("python", "-c", ASK, f"http://127.0.0.1:9400{path}").stdout


def healthy(container: Container, containers: Containers) -> bool:
    """The result of the image's health check."""
    kind, *command = containers.image.health
    assert kind == "CMD"
    return container.execute(*command).returncode == 0


def has_read_all(container: Container) -> bool:
    return f"streamduel_poll_records_sum {RECORDS}.0" in asked(container, "/metrics")


def inspected(containers: Containers, start: Start) -> dict[str, Any]:
    status, said = containers.run(
        Start(command=["inspect", CONFIG, "--json"], mounts=start.mounts, writable=start.writable)
    )
    assert status == 0, said
    found: dict[str, Any] = json.loads(said)["experiments"]["search"]
    return found


def test_health_and_commit_on_stop(containers: Containers, tmp_path: Path, data: Path) -> None:
    start = service(tmp_path, data)
    with containers.start(start) as container:
        container.until(lambda: healthy(container, containers))
        container.until(lambda: has_read_all(container))
        assert inspected(containers, start)["duels"] == 0, "committed too early"
        container.signal("TERM")
        assert container.ended() == 0, container.log
    found = inspected(containers, start)
    assert found["duels"] > 0
    assert found["offset"]["next"] == RECORDS


def test_a_command_ends_at_sigterm(containers: Containers) -> None:
    words = "simulate --environment condorcet --arms 6 --policy rucb --horizon 3000000 --runs 1000"
    with containers.start(Start(command=words.split())) as container:
        container.until(lambda: handles_sigterm(container))
        container.signal("TERM")
        assert container.ended() == 128 + signal.SIGTERM, container.log


def handles_sigterm(container: Container) -> bool:
    """Whether the first process does; the kernel drops a signal that it does not handle."""
    status = container.execute("cat", "/proc/1/status").stdout
    found = re.search(r"^SigCgt:\t(\w+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & 1 << signal.SIGTERM - 1)


def test_health_check_fails_without_a_service(containers: Containers) -> None:
    with containers.start(Start(entrypoint=["sleep", "3600"])) as container:
        container.until(lambda: container.execute("true").returncode == 0)
        assert not healthy(container, containers)


def test_the_process_has_no_privileges(containers: Containers, tmp_path: Path, data: Path) -> None:
    with containers.start(service(tmp_path, data)) as container:
        container.until(lambda: healthy(container, containers))
        status = container.execute("cat", "/proc/1/status").stdout
        assert re.search(r"^Uid:(\t10001){4}$", status, re.MULTILINE)
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
        assert container.execute("cat", "/proc/1/comm").stdout.strip() == "streamduel"
        for path in ("/x", "/opt/streamduel/x", "/etc/streamduel/x", "/var/tmp/x"):
            refused = container.execute("touch", path)
            assert refused.returncode != 0
            assert "Read-only file system" in refused.stderr


def test_only_the_configured_paths_are_written(
    containers: Containers, tmp_path: Path, data: Path
) -> None:
    with containers.start(service(tmp_path, data)) as container:
        container.until(lambda: has_read_all(container))
        written = container.execute("find", "/tmp", "/dev/shm", "-type", "f").stdout
        assert written.split() == []
        assert {path.name for path in data.iterdir()} == {"clicks.jsonl", "out", "state"}


def test_an_unwritable_folder_is_one_error_sentence(
    containers: Containers, tmp_path: Path, data: Path
) -> None:
    data.chmod(0o755)
    status, said = containers.run(service(tmp_path, data))
    assert status == 1
    assert "the directory /data/out cannot be made: Permission denied." in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", ["kafka.yaml", "local.yaml", "reference.yaml"])
def test_validate(containers: Containers, name: str) -> None:
    status, said = containers.run(
        Start(command=["validate", CONFIG], mounts={CONFIG: ROOT / "configs" / name})
    )
    assert status == 0, said
    assert "is valid: 1 experiment" in said


def test_a_variable_overrides_the_mounted_configuration(
    containers: Containers, tmp_path: Path, data: Path
) -> None:
    start = service(tmp_path, data)
    variables = {"STREAMDUEL_MONITORING__PORT": "no port"}
    status, said = containers.run(Start(mounts=start.mounts, environment=variables))
    assert status == 2
    assert "monitoring.port" in said
