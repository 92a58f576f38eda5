"""Contents of the image, as docs/operations.md describes them."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from streamduel import __version__
from tests.image.container import Containers
from tests.image.engine import Start

HOME: Final = "/opt/streamduel"
"""Everything that the image adds to its base."""

ADDED: Final = 177_000_000
"""Maximum bytes added to the base: 171 MB today, of which numpy has 73, zstandard 24, and
confluent-kafka 17."""


class Entry(NamedTuple):
    """A file or directory of the image."""

    kind: str
    mode: int
    owner: str
    size: int
    path: str


@pytest.fixture(scope="module")
def entries(containers: Containers) -> list[Entry]:
    """All files of the image without mounts."""
    listed = containers.shell(r"find / -xdev -printf '%y %m %U:%G %s %p\n'", user="0:0")
    found = []
    for line in listed.splitlines():
        kind, mode, owner, size, path = line.split(" ", 4)
        found.append(Entry(kind, int(mode, 8), owner, int(size), path))
    return found


def test_version(containers: Containers) -> None:
    status, said = containers.run(Start(command=["--version"]))
    assert (status, said) == (0, f"streamduel {__version__}\n")


def test_labels(containers: Containers) -> None:
    named = "org.opencontainers.image."
    labels = {
        key.removeprefix(named): text
        for key, text in containers.image.labels.items()
        if key.startswith(named)
    }
    assert labels["title"] == "streamduel"
    assert labels["version"] == __version__
    assert labels["licenses"] == "Apache-2.0"
    assert labels["description"]


def test_it_runs_as_an_unprivileged_user(containers: Containers) -> None:
    assert containers.image.user == "10001:10001"
    assert containers.shell("id -u; id -g; id -G").split() == ["10001"] * 3
    assert "10001:10001::/:/usr/sbin/nologin" in containers.shell("getent passwd 10001")


def test_the_user_owns_no_file(entries: list[Entry]) -> None:
    assert {entry.owner for entry in entries if entry.path.startswith(HOME)} == {"0:0"}
    assert not [entry for entry in entries if "10001" in entry.owner]


def test_no_file_is_world_writable(entries: list[Entry]) -> None:
    sticky = 0o1000
    assert [e for e in entries if e.path == f"{HOME}/bin/streamduel"], "the listing is complete"
    assert not [
        entry
        for entry in entries
        if entry.mode & 0o002 and entry.kind != "l" and not entry.mode & sticky
    ]


def test_no_file_is_setuid_or_setgid(entries: list[Entry]) -> None:
    assert not [entry for entry in entries if entry.path.startswith(HOME) and entry.mode & 0o6000]


def test_size(entries: list[Entry]) -> None:
    added = sum(
        entry.size for entry in entries if entry.path.startswith(HOME) and entry.kind == "f"
    )
    assert 80_000_000 < added < ADDED, f"{added / 1e6:.0f} MB"


def test_no_installer_and_no_compiler(containers: Containers) -> None:
    installed = containers.shell(f"cd {HOME}; ls bin lib/python3*/site-packages").split()
    assert "streamduel" in installed
    unwanted = ("pip", "setuptools", "pkg_resources", "hatchling")
    assert not [name for name in installed if name.startswith(unwanted)]
    tools = "cc gcc g++ clang make ld rustc git curl wget"
    assert containers.shell(f"for tool in {tools}; do command -v $tool || true; done") == ""


def test_no_file_of_the_source_tree(entries: list[Entry]) -> None:
    paths = {entry.path for entry in entries}
    assert not [path for path in paths if path.startswith(("/src", "/root/.cache", "/tmp/"))]
    names = {Path(path).name for path in paths if path.startswith(HOME)}
    assert not names & {".git", "Dockerfile", "Makefile", "pyproject.toml", "requirements.lock"}


def test_no_setting_of_the_build_machine(containers: Containers) -> None:
    variables = " ".join(containers.image.environment).lower()
    assert "pip_" not in variables
    assert "proxy" not in variables
    configured = "cat /etc/pip.conf /root/.config/pip/pip.conf /root/.netrc 2>/dev/null || true"
    assert containers.shell(configured, user="0:0") == ""


def test_no_private_key(containers: Containers) -> None:
    # Not in binaries: librdkafka contains the first line of a key, which it compares.
    private = "grep -rlIE -e '-----BEGIN ([A-Z]+ )?PRIVATE KEY' /etc /home /opt /root || true"
    assert containers.shell(private, user="0:0") == ""
