"""The public interface of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import streamduel


@pytest.mark.parametrize("name", streamduel.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(streamduel, name) is not None
    assert name in dir(streamduel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'streamduel' has no attribute 'sevre'"):
        _ = streamduel.sevre


def test_the_import_needs_no_dependency() -> None:
    code = """
import sys
import streamduel
print(*sorted({"msgspec", "numpy", "pydantic", "structlog", "typer"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("\n", "")
