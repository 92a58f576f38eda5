"""The service as a whole, on files."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

import pytest
import yaml

from streamduel.config import load
from streamduel.errors import Fenced
from streamduel.service import GC_SECONDS, GarbageCollection, serve
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask
from streamduel.testing import duel


class Future:
    """Keeps the error that it raises, as those of Kafka's clients do."""

    def __init__(self) -> None:
        self._error = Fenced("refused")

    def result(self) -> None:
        raise self._error


class Refusing:
    """Refuses the first commits with records."""

    def __init__(self, times: int) -> None:
        self._left = times

    def __call__(self, step: str) -> None:
        if step == "before finish" and self._left:
            self._left -= 1
            Future().result()


class Restored(Observer):
    """Remembers the states that were restored, without keeping them.

    Attributes:
        frozen: how many objects the collector ignored meanwhile.
    """

    def __init__(self) -> None:
        self.tasks: list[ref[PartitionTask]] = []
        self.frozen = 0

    def restored(self, task: PartitionTask) -> None:
        self.tasks.append(ref(task))
        self.frozen = gc.get_freeze_count()


@pytest.fixture
def _rare_collector() -> Iterator[None]:
    """As in a service with few objects."""
    thresholds = gc.get_threshold()
    gc.disable()
    yield
    gc.enable()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("_rare_collector")
def test_the_collector_finds_the_state_of_a_refused_commit_only(tmp_path: Path) -> None:
    log, config = tmp_path / "clicks.jsonl", tmp_path / "config.yaml"
    log.write_bytes(b"".join([duel("search", n, "x", "y", "a") + b"\n" for n in range(50)]))
    document = {
        "source": {"connector": "files", "path": str(log)},
        "sink": {"connector": "files", "path": str(tmp_path / "out")},
        "snapshots": {"connector": "files", "path": str(tmp_path / "state")},
        "experiments": {"search": {"arms": ["x", "y"]}},
    }
    config.write_text(yaml.safe_dump(document))
    restored = Restored()
    serve(load(config), lambda: False, until_end=True, observers=[restored], failpoint=Refusing(3))
    assert len(restored.tasks) == 4
    assert not [it for it in restored.tasks[:3] if it() is not None]
    assert restored.frozen > 10_000, "it looks through all that start-up has loaded"
    assert gc.get_freeze_count() == 0


class Cycle:
    """Refers to itself, as the traceback of an error does that is kept where it was raised."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("_rare_collector")
def test_failed_attempts_to_connect_are_freed_while_brokers_are_away() -> None:
    now = 0.0

    def alive(*, source: bool) -> bool:
        attempt = ref(Cycle())
        state.connection(source=source)
        return attempt() is not None

    state = GarbageCollection(lambda: now)
    assert alive(source=True)
    assert not alive(source=False)
    assert alive(source=False), "a poll must not run the collector each time"
    now = GC_SECONDS
    assert not alive(source=False)
    now = 2 * GC_SECONDS
    state.gained([0])
    assert not alive(source=True), "a snapshot cannot be loaded"
    now = 3 * GC_SECONDS
    state.lost([0])
    assert alive(source=True)
