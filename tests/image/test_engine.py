"""Where the image cannot be built, its tests are missed in silence nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.conftest import NO_ENGINE, REQUIRE, WAYS_OUT
from tests.image.engine import ROOT

SECONDS = 120
"""It takes three, on a machine with nothing else to do."""

ONE = "tests/image/test_image.py::test_it_says_which_version_it_is"


def one_test(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """One test of the image, on a machine that has nothing to build it with."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", REQUIRE}}
    environment |= {"PATH": str(tmp_path), **variables}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", ONE],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("variable", ["CI", REQUIRE])
def test_they_fail_where_they_must_not_be_missed(tmp_path: Path, variable: str) -> None:
    done = one_test(tmp_path, **{variable: "true"})
    assert done.returncode == 1
    assert f"{NO_ENGINE} (Docker: there is no 'docker' on the PATH; Debian: not installed: " in (
        done.stdout
    )
    assert "buildah, mmdebstrap, runc" in done.stdout


def test_they_are_named_where_they_may_be_missed(tmp_path: Path) -> None:
    done = one_test(tmp_path)
    assert done.returncode == 0
    assert "NOT RUN for want of the container image: 1" in done.stdout
    assert f"\n{ONE}\n{WAYS_OUT}" in done.stdout
