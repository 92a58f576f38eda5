"""The image keeps what docs/operations.md says of it: what is in it, and what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from streamduel import __version__
from tests.image.container import Containers
from tests.image.engine import Start

HOME: Final = "/opt/streamduel"
"""Where all of streamduel is; the rest of the image is its base."""

ADDED: Final = 160_000_000
"""Bytes that streamduel may add to its base. It is 130 MB, of which numpy is 57."""


class Entry(NamedTuple):
    """A file or directory of the image."""

    kind: str
    mode: int
    owner: str
    size: int
    path: str


@pytest.fixture(scope="module")
def entries(containers: Containers) -> list[Entry]:
    """All of them, but for what is mounted."""
    listed = containers.shell(r"find / -xdev -printf '%y %m %U:%G %s %p\n'", user="0:0")
    found = []
    for line in listed.splitlines():
        kind, mode, owner, size, path = line.split(" ", 4)
        found.append(Entry(kind, int(mode, 8), owner, int(size), path))
    return found


def test_it_says_which_version_it_is(containers: Containers) -> None:
    status, said = containers.run(Start(command=["--version"]))
    assert (status, said) == (0, f"streamduel {__version__}\n")


def test_its_labels_say_what_it_is(containers: Containers) -> None:
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


def test_it_runs_as_a_user_who_is_nobody(containers: Containers) -> None:
    assert containers.image.user == "10001:10001"
    assert containers.shell("id -u; id -g; id -G").split() == ["10001"] * 3
    assert "10001:10001::/:/usr/sbin/nologin" in containers.shell("getent passwd 10001")


def test_nothing_of_it_belongs_to_that_user(entries: list[Entry]) -> None:
    assert {entry.owner for entry in entries if entry.path.startswith(HOME)} == {"0:0"}
    assert not [entry for entry in entries if "10001" in entry.owner]


def test_nobody_may_write_where_everybody_reads(entries: list[Entry]) -> None:
    sticky = 0o1000
    assert [e for e in entries if e.path == f"{HOME}/bin/streamduel"], "it was looked through"
    assert not [
        entry
        for entry in entries
        if entry.mode & 0o002 and entry.kind != "l" and not entry.mode & sticky
    ]


def test_nothing_that_it_adds_runs_as_somebody_else(entries: list[Entry]) -> None:
    assert not [entry for entry in entries if entry.path.startswith(HOME) and entry.mode & 0o6000]


def test_it_adds_no_more_than_it_needs(entries: list[Entry]) -> None:
    added = sum(
        entry.size for entry in entries if entry.path.startswith(HOME) and entry.kind == "f"
    )
    assert 80_000_000 < added < ADDED, f"{added / 1e6:.0f} MB"


def test_nothing_can_be_installed_or_compiled_with_it(containers: Containers) -> None:
    installed = containers.shell(f"cd {HOME}; ls bin lib/python3*/site-packages").split()
    assert "streamduel" in installed
    unwanted = ("pip", "setuptools", "pkg_resources", "hatchling")
    assert not [name for name in installed if name.startswith(unwanted)]
    tools = "cc gcc g++ clang make ld rustc git curl wget"
    assert containers.shell(f"for tool in {tools}; do command -v $tool || true; done") == ""


def test_it_holds_what_runs_and_nothing_of_the_source_tree(entries: list[Entry]) -> None:
    paths = {entry.path for entry in entries}
    assert not [path for path in paths if path.startswith(("/src", "/root/.cache", "/tmp/"))]
    names = {Path(path).name for path in paths if path.startswith(HOME)}
    assert not names & {".git", "Dockerfile", "Makefile", "pyproject.toml", "requirements.lock"}


def test_it_knows_nothing_of_the_machine_that_built_it(containers: Containers) -> None:
    variables = " ".join(containers.image.environment).lower()
    assert "pip_" not in variables
    assert "proxy" not in variables
    configured = "cat /etc/pip.conf /root/.config/pip/pip.conf /root/.netrc 2>/dev/null || true"
    assert containers.shell(configured, user="0:0") == ""


def test_it_holds_no_key_of_anybody(containers: Containers) -> None:
    private = "grep -rlE -e '-----BEGIN ([A-Z]+ )?PRIVATE KEY' /etc /home /opt /root || true"
    assert containers.shell(private, user="0:0") == ""
