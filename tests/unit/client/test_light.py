"""Importing the client loads nothing that the service alone needs."""

import subprocess
import sys

import pytest

HEAVY = (
    "kafka", "matplotlib", "mmh3", "numba", "numpy", "prometheus_client", "pydantic", "rich",
    "scipy", "starlette", "typer", "uvicorn", "yaml",
)  # fmt: skip
FOREIGN = (
    "streamduel.config.model",
    "streamduel.policies",
    "streamduel.simulation",
    "streamduel.stream",
)


def loaded_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded afterwards."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import streamduel.client",
        "from streamduel.client import *\n"
        "Interleaver('optimised', 3).merge(Draw('x', 'y'), ['d', 'e'], ['d', 'e'])\n"
        "with Assignments(InMemoryFeed(), defaults={'s': 'x'}) as known: known.draw('s', 'key')",
    ],
)
def test_the_client_loads_msgspec_and_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)
    assert {"msgspec", "streamduel.client"} <= loaded
    assert not loaded & {*HEAVY, *FOREIGN}


def test_kafka_python_is_loaded_for_kafka_alone() -> None:
    loaded = loaded_after("from streamduel.client import EventLog\nEventLog.to_kafka('nowhere:1')")
    assert "kafka" in loaded
    assert not loaded & ({*HEAVY, *FOREIGN} - {"kafka"})
