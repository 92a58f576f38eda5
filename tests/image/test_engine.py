"""Tests of the image are never skipped silently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.conftest import NO_ENGINE, NOT_BUILT, REQUIRE, WAYS_OUT
from tests.image.engine import ROOT

SECONDS = 120
"""A run takes 3 s on an idle machine."""

DOCKER = """\
#!/bin/sh
case "$1" in
    build) echo "dockerfile parse error on line 3: unknown instruction: RNU" >&2; exit 1;;
    %s) echo "no such host" >&2; exit 1;;
esac
"""
"""A fake engine: fails to build, and fails at one more command."""

ONE = "tests/image/test_image.py::test_version"


def one_test(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one test of the image on a machine without an engine."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", REQUIRE}}
    environment |= {"PATH": str(tmp_path), **variables}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", ONE],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("variable", ["CI", REQUIRE])
def test_image_tests_fail_where_they_are_required(tmp_path: Path, variable: str) -> None:
    done = one_test(tmp_path, **{variable: "true"})
    assert done.returncode == 1
    assert f"{NO_ENGINE} (Docker: there is no 'docker' on the PATH; Debian: not installed: " in (
        done.stdout
    )
    assert "buildah, mmdebstrap, runc" in done.stdout


def test_image_tests_are_listed_where_they_are_optional(tmp_path: Path) -> None:
    done = one_test(tmp_path)
    assert done.returncode == 0
    assert "NOT RUN without the container image: 1" in done.stdout
    assert f"\n{ONE}\n{WAYS_OUT}" in done.stdout


def test_image_tests_fail_if_the_image_does_not_build(tmp_path: Path) -> None:
    done = on_docker(tmp_path, fails="nothing")
    assert done.returncode == 1
    assert f"{NOT_BUILT}: docker failed with status 1:" in done.stdout
    assert "unknown instruction: RNU" in done.stdout


@pytest.mark.parametrize(
    ("fails", "reason"), [("info", "no engine answers"), ("image|pull", "python:3")]
)
def test_an_unusable_engine_is_skipped(tmp_path: Path, fails: str, reason: str) -> None:
    done = on_docker(tmp_path, fails, CI="true")
    assert done.returncode == 1
    assert f"{NO_ENGINE} (Docker: {reason}" in done.stdout
    assert "; Debian: not installed: " in done.stdout


def on_docker(folder: Path, fails: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one test of the image on a machine with only the fake engine."""
    engine = folder / "docker"
    engine.write_text(DOCKER % fails)
    engine.chmod(0o755)
    return one_test(folder, **variables)
