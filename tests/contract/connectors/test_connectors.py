"""Runs the checks on every connector; a new one adds a bed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from streamduel.connector import Failpoint, Outlet, Source, load_connector, no_failpoint
from streamduel.testing import Broker, MemorySource
from tests.contract.connectors.checks import CHECKS, Bed
from tests.contract.connectors.configured import Configured


class InMemory:
    """The connector of the recovery tests, held to the same promises."""

    def __init__(self) -> None:
        self._broker = Broker([])

    def append(self, values: Sequence[bytes]) -> None:
        self._broker.log = [*self._broker.log, *values]

    def append_one(self, key: bytes, value: bytes) -> str:
        self.append([value])
        return MemorySource.topic

    def source(self) -> Source:
        return self._broker.source()

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        return self._broker.outlet()

    def archive(self) -> Outlet:
        return self._broker.outlet()


def files(folder: Path) -> Bed:
    log = folder / "clicks.jsonl"
    log.touch()

    def append(values: Sequence[bytes]) -> None:
        with log.open("ab") as file:
            file.writelines(value + b"\n" for value in values)

    return Configured(
        load_connector("files"),
        {"connector": "files", "path": log},
        {"connector": "files", "path": folder / "out"},
        {"connector": "files", "path": folder / "state"},
        append,
    )


@pytest.fixture(params=["memory", "files", pytest.param("kafka", marks=pytest.mark.kafka)])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Bed:
    if request.param == "memory":
        return InMemory()
    if request.param == "files":
        return files(tmp_path)
    made: Bed = request.getfixturevalue("kafka_bed")
    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_connector(check: Callable[[Bed], None], bed: Bed) -> None:
    check(bed)
