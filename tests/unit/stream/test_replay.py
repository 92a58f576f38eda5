"""Replay: what is a difference, on a compacted topic too, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import structs

from streamduel.connector import Message, Snapshot
from streamduel.errors import SnapshotError
from streamduel.records import Assignment
from streamduel.stream.replay import Verdict, replay
from streamduel.testing import Broker, MemoryOutlet, run
from tests.unit.stream.test_runner import CONFIG, LOG, Deleted, undisturbed


class Compacted(MemoryOutlet):
    compacted = True


def audit(broker: Broker) -> Verdict:
    return replay(CONFIG, broker.source(), Compacted(broker))


def test_only_the_newest_assignment_must_be_left() -> None:
    broker = undisturbed()
    del broker.assignments[:-1]
    verdict = audit(broker)
    assert verdict.difference is None
    assert verdict.assignments == 1
    assert verdict.records == len(broker.records())


def test_a_missing_newest_assignment_is_a_difference() -> None:
    broker = undisturbed()
    newest = len(broker.assignments)
    del broker.assignments[-1]
    expected = f"epoch {newest} of 'search', the newest, was not published, or was deleted."
    assert audit(broker).difference == expected


def test_an_emptied_topic_is_a_difference() -> None:
    broker = undisturbed()
    broker.assignments.clear()
    assert "was not published" in (audit(broker).difference or "")


def test_an_epoch_published_twice_is_a_difference() -> None:
    broker = undisturbed()
    broker.assignments.append(Message(None, broker.assignments[3].value))
    assert audit(broker).difference == "epoch 4 of 'search' was published twice."


def test_records_of_other_programs_are_ignored() -> None:
    broker = undisturbed()
    foreign = [b"hello", b"[1]", b"\xff", b'{"experiment": "\xff"}', b'{"x": ' + b"[" * 100_000]
    for value in foreign:
        broker.assignments.append(Message(b"foreign", value))
    assert audit(broker).difference is None


@pytest.mark.parametrize("late", [False, True], ids=["before", "while"])
def test_deleted_records_are_no_difference(late: bool) -> None:
    broker = undisturbed()
    with pytest.raises(SnapshotError, match=r"'clicks' no longer has the records 0 to 7 of part"):
        replay(CONFIG, Deleted(broker, 8, late=late), Compacted(broker))


class Running(MemoryOutlet):
    """An archive beside a service that folds and commits on before each answer."""

    def __init__(self, broker: Broker, *, compacted: bool, lost: int = 0) -> None:
        super().__init__(broker)
        self.compacted = compacted
        self._lost = lost

    def _commit(self) -> None:
        self._broker.log = LOG[: len(self._broker.log) + 100]
        before = len(self._broker.assignments)
        run(CONFIG, self._broker)
        assert len(self._broker.assignments) > before

    def load(self, partition: int) -> Snapshot | None:
        self._commit()
        return super().load(partition)

    def published(self) -> Iterator[Message]:
        """All but the lost one, counted from the newest of the snapshot before."""
        newest = len(self._broker.assignments)
        self._commit()
        for epoch, message in enumerate(super().published(), 1):
            if not self._lost or epoch != newest + 1 - self._lost:
                yield message


def half() -> Broker:
    broker = Broker(LOG[:200])
    run(CONFIG, broker)
    return broker


@pytest.mark.parametrize("compacted", [False, True])
def test_what_a_service_commits_meanwhile_is_no_difference(compacted: bool) -> None:
    broker = half()
    verdict = replay(CONFIG, broker.source(), Running(broker, compacted=compacted))
    assert verdict.difference is None
    assert verdict.records == 300, "those of the first snapshot that was loaded"


@pytest.mark.parametrize("lost", [1, 2])
def test_an_assignment_that_is_lost_beside_a_service_is_a_difference(lost: int) -> None:
    broker = half()
    archive = Running(broker, compacted=False, lost=lost)
    assert "published: nothing" in (replay(CONFIG, broker.source(), archive).difference or "")


@pytest.mark.parametrize("running", [False, True])
def test_an_assignment_that_no_snapshot_knows_is_a_difference(running: bool) -> None:
    broker = half()
    invented = dated(broker.assignments[-1], epoch=9999)
    broker.assignments.append(invented)
    archive = Running(broker, compacted=True) if running else Compacted(broker)
    found = replay(CONFIG, broker.source(), archive).difference or ""
    assert found.startswith("epoch 9999 of 'search' differs:")
    assert found.endswith("replayed: nothing")


def dated(assignment: Message, **changes: int) -> Message:
    content = msgspec.json.decode(assignment.value, type=Assignment)
    return Message(None, msgspec.json.encode(structs.replace(content, **changes)))


def test_the_replay_goes_on_after_assignments_that_differ_only_in_their_date() -> None:
    broker = undisturbed()
    honest = broker.assignments[2]
    for at, changes in ((2, {"offset": 1}), (4, {"ts": 7, "valid_until": 9})):
        broker.assignments[at] = dated(broker.assignments[at], **changes)
    verdict = audit(broker)
    assert verdict.difference == (
        f"epoch 3 of 'search' differs:\n  published: {broker.assignments[2].value.decode()}\n"
        f"  replayed: {honest.value.decode()}"
    )
    assert (verdict.dated, verdict.assignments) == (2, len(broker.assignments) - 2)
    assert (verdict.records, verdict.states_equal) == (len(broker.records()), True)
    broker.assignments[5] = dated(broker.assignments[5], duels=0)
    verdict = audit(broker)
    assert "epoch 6 of 'search' differs" in (verdict.difference or "")
    assert (verdict.dated, verdict.states_equal) == (2, False)
