"""configs/compose.yaml is valid, matches the files it mounts, and exposes nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from streamduel.service import SHUTDOWN_SECONDS
from tests.faults.processes import ROOT

FILE: Final = ROOT / "configs" / "compose.yaml"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]

GRACE_SECONDS: Final = 10.0
"""Compose's default stop_grace_period."""


def mounted(name: str) -> list[tuple[str, str, str]]:
    """A service's volumes: source, target, mode."""
    volumes = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
    return [(source, target, *(mode or ["rw"])) for source, target, *mode in volumes]


def docker_compose() -> list[str]:
    """The command: the plugin of Docker, or the program, which Debian has."""
    for command in (["docker", "compose"], ["docker-compose"]):
        with suppress(FileNotFoundError):
            done = subprocess.run([*command, "version"], capture_output=True, check=False)
            if done.returncode == 0:
                return command
    pytest.fail("Docker Compose is missing; on Debian: apt-get install docker-compose")


@pytest.mark.parametrize("command", [["docker", "compose"], ["docker-compose"]])
def test_the_plugin_or_the_program_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    make = shutil.which("make")
    assert make
    program, *arguments = [*command, "version"]
    (tmp_path / program).write_text(f'#!/bin/sh\ntest "$*" = "{" ".join(arguments)}"\n')
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))  # without apt-get: nothing is installed
    assert docker_compose() == command
    done = subprocess.run(
        [make, "image-tools"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "packages are missing: buildah mmdebstrap runc\n" in done.stderr


def test_docker_compose_accepts_the_file() -> None:
    done = subprocess.run(
        [*docker_compose(), "-f", str(FILE), "config", "--quiet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned_or_built_here(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        assert (FILE.parent / service["build"]["context"] / "Dockerfile").is_file()
    else:
        assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+", service["image"])


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart-ranker.md"])
def test_kafka_has_the_version_of_the_documentation(page: str) -> None:
    shown = re.findall(r"apache/kafka:\S+", (ROOT / page).read_text(encoding="utf-8"))
    assert set(shown) == {SERVICES["kafka"]["image"]}


def test_ports_are_published_on_loopback_only() -> None:
    published = {port: name for name in SERVICES for port in SERVICES[name].get("ports", [])}
    assert published == {
        "127.0.0.1:9092:9092": "kafka",
        "127.0.0.1:9400:9400": "streamduel",
        "127.0.0.1:9090:9090": "prometheus",
        "127.0.0.1:3000:3000": "grafana",
    }


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("read_only", False) == (name != "kafka")
    assert not {"privileged", "cap_add", "network_mode", "pid", "user"} & set(service)


@pytest.mark.parametrize("name", SERVICES)
def test_services_have_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_mounts_exist_and_are_read_only(name: str) -> None:
    for source, target, mode in mounted(name):
        assert target.startswith("/")
        if source.startswith("."):
            assert (FILE.parent / source).exists()
            assert mode == "ro"
        else:
            assert source in COMPOSE["volumes"]


def test_every_volume_is_used() -> None:
    assert {source for name in SERVICES for source, _, _ in mounted(name)} >= set(
        COMPOSE["volumes"]
    )


def test_health_checks() -> None:
    asked = {name for name in SERVICES if "test" in SERVICES[name].get("healthcheck", {})}
    assert asked == {"kafka", "prometheus", "grafana"}
    for name in ("prometheus", "grafana"):
        command = SERVICES[name]["healthcheck"]["test"]
        assert "--proxy=off" in command, "Docker may set http_proxy in every container"
    assert SERVICES["users"]["healthcheck"] == {"disable": True}, (
        "the image's health check needs the monitoring port"
    )
    assert "healthcheck" not in SERVICES["streamduel"], "the image has one"


def test_start_order() -> None:
    assert SERVICES["users"]["depends_on"] == {"streamduel": {"condition": "service_healthy"}}
    assert SERVICES["streamduel"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}


def test_stop_grace_period_covers_the_last_commit() -> None:
    assert "stop_grace_period" not in SERVICES["streamduel"]
    assert GRACE_SECONDS > SHUTDOWN_SECONDS


def test_the_mounted_configuration_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    ((source, target, _),) = mounted("streamduel")
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert json.dumps(["run", target]) in dockerfile
    for variable, value in SERVICES["streamduel"]["environment"].items():
        monkeypatch.setenv(variable, value)
    done = subprocess.run(
        [sys.executable, "-m", "streamduel", "validate", str(FILE.parent / source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_clients_use_kafkas_listeners() -> None:
    settings = SERVICES["kafka"]["environment"]
    inside, outside = settings["KAFKA_ADVERTISED_LISTENERS"].split(",")
    servers = SERVICES["streamduel"]["environment"]["STREAMDUEL_SOURCE__BOOTSTRAP_SERVERS"]
    assert inside == f"INSIDE://{servers}"
    assert SERVICES["users"]["command"][0] == servers
    assert outside == "OUTSIDE://localhost:9092"
    for name in ("streamduel", "users"):
        assert set(SERVICES[name]["networks"]) & set(SERVICES["kafka"]["networks"])


def test_prometheus_scrapes_streamduel_and_grafana_reads_prometheus() -> None:
    folders = {target: FILE.parent / source for source, target, _ in mounted("prometheus")}
    flags = dict(flag.split("=", 1) for flag in SERVICES["prometheus"]["command"])
    config = Path(flags["--config.file"])
    scraped = yaml.safe_load((folders[str(config.parent)] / config.name).read_text())
    (target,) = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == "streamduel:9400"
    assert set(SERVICES["prometheus"]["networks"]) <= set(SERVICES["streamduel"]["networks"])
    sources = yaml.safe_load(
        (FILE.parent / "grafana/provisioning/datasources/prometheus.yml").read_text()
    )
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"
    assert SERVICES["grafana"]["networks"] == SERVICES["prometheus"]["networks"]


def test_grafana_finds_its_dashboards() -> None:
    folders = {target: FILE.parent / source for source, target, _ in mounted("grafana")}
    home = Path(SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (folders[str(home.parent)] / home.name).is_file()
    (provided,) = (folders["/etc/grafana/provisioning"] / "dashboards").iterdir()
    (provider,) = yaml.safe_load(provided.read_text(encoding="utf-8"))["providers"]
    assert provider["options"]["path"] == str(home.parent)


def test_grafana_is_read_only_and_has_no_password() -> None:
    settings = SERVICES["grafana"]["environment"]
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert settings["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert not [name for service in SERVICES.values() for name in service.get("environment", {})
                if "PASSWORD" in name]  # fmt: skip
