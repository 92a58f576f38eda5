"""Snapshots: exact round trips and refusals."""

from __future__ import annotations

import json

import msgspec
import pytest

from streamduel.checksum import seal
from streamduel.errors import SnapshotError
from streamduel.stream.routing import ClickLog
from streamduel.stream.saved_state import state_hash
from streamduel.stream.snapshot import canonical, experiment_entry
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from tests.unit.stream.folding import DUEL, Partition, config, text

LOG = ClickLog("clicks", 2, lambda experiment: 0)
IMPRESSION = text({"type": "impression", "id": "i-1", "experiment": "search", "a": "bm25",
                   "b": "ltr-v1", "teams": ["a", "b"]})  # fmt: skip
CLICK = {"type": "click", "id": "c-1", "experiment": "search", "impression": "i-1", "rank": 0}


@pytest.fixture
def entries() -> dict[str, bytes]:
    """The snapshot of a partition with one duel."""
    partition = Partition()
    partition.fold(text(DUEL))
    return partition.entries


def refusal(entries: dict[str, bytes], log: ClickLog = LOG) -> str:
    with pytest.raises(SnapshotError) as refused:
        PartitionTask(config(), log, 0, entries)
    return str(refused.value)


def test_another_log_is_refused(entries: dict[str, bytes]) -> None:
    assert refusal(entries, ClickLog("views", 2, LOG.home)) == (
        "the snapshot of partition 0 belongs to 'clicks' (found in place of 'views'); keep the "
        "snapshots of another log in another place, or continue with the present state from the "
        "start of 'views': 'streamduel repair new-log CONFIG'."
    )


def test_a_repartitioned_log_is_refused(entries: dict[str, bytes]) -> None:
    assert refusal(entries, ClickLog("clicks", 3, LOG.home)) == (
        "the snapshot was made with 2 partitions of 'clicks' (found 3 now); experiments would "
        "change partitions: move them with 'streamduel repair repartition CONFIG --from FORMER', "
        "or use a new topic."
    )


def test_the_json_round_trip_of_a_state_is_exact(entries: dict[str, bytes]) -> None:
    task = PartitionTask(config(), LOG, 0, entries)
    task.begin(1)
    found = canonical(experiment_entry(task.experiments["search"]))
    assert seal(found) == entries["experiment/search"]


def test_an_experiment_removed_from_the_configuration_has_ended(entries: dict[str, bytes]) -> None:
    """Its records are dead letters until it is configured again."""
    other = config()
    only = other.model_copy(update={"experiments": {"ads": other.experiments["ads"]}})
    task = PartitionTask(only, LOG, 0, entries)
    task.begin(1)
    assert list(task.experiments) == ["ads"]
    assert task.changed
    entries |= task.take_commit().entries
    assert not task.changed
    again = PartitionTask(only, LOG, 0, entries)
    assert not again.changed
    ended = json.loads(entries["experiment/search"])
    assert (ended["ended_at"], "gaps" in ended) == (1, False)

    again.begin(1)
    again.fold([Record(1, text(DUEL, id="2"), 1)])
    commit = again.take_commit()
    assert [json.loads(it.value)["reason"] for it in commit.dead_letters] == ["unknown_experiment"]

    restored = PartitionTask(config(), LOG, 0, {**entries, **commit.entries})
    restored.begin(1)
    restored.fold([Record(1, text(DUEL, id="2"), 1), Record(2, text(DUEL, id="3"), 2)])
    entry = json.loads(restored.take_commit().entries["experiment/search"])
    assert (entry["ended_at"], entry["gaps"]) == (None, [[1, 2]])
    assert entry["state"]["tallies"]["accepted"] == ended["state"]["tallies"]["accepted"] + 1


def test_an_experiment_that_missed_no_record_was_removed_too(entries: dict[str, bytes]) -> None:
    """What was open is forgotten, which a replay must know."""
    other = config()
    only = other.model_copy(update={"experiments": {"ads": other.experiments["ads"]}})
    task = PartitionTask(only, LOG, 0, entries)
    task.begin(1)
    restored = PartitionTask(config(), LOG, 0, {**entries, **task.take_commit().entries})
    restored.begin(1)
    restored.fold([Record(1, text(DUEL, id="2"), 1)])
    entry = json.loads(restored.take_commit().entries["experiment/search"])
    assert (entry["ended_at"], entry["gaps"]) == (None, [[1, 1]])


def test_what_was_open_in_a_removed_experiment_is_not_shown_again() -> None:
    partition = Partition()
    partition.fold(IMPRESSION, text(CLICK, impression="later"))
    assert partition.task.experiments["search"].open == {"impressions": 1, "clicks": 1}
    other = config()
    only = other.model_copy(update={"experiments": {"ads": other.experiments["ads"]}})
    entries = Partition(only, entries=partition.entries).entries
    again = PartitionTask(config(), LOG, 0, entries)
    again.begin(0)
    assert again.changed, "it is saved even if no record follows"
    saved = again.take_commit().entries
    assert not again.changed
    for records in ([], partition.log, [Record(2, b"not of an experiment", 2)]):
        again.fold(records)
        assert again.experiments["search"].open == {"impressions": 0, "clicks": 0}
    last = again.take_commit().entries
    assert last.get("experiment/search", saved["experiment/search"]) == saved["experiment/search"]
    restored = PartitionTask(config(), LOG, 0, {**entries, **saved})
    assert not restored.changed
    assert restored.experiments["search"].open == {"impressions": 0, "clicks": 0}


def test_a_record_after_a_deleted_pending_click_is_saved() -> None:
    partition = Partition()
    partition.fold(text(CLICK))
    again = PartitionTask(config(), LOG, 0, partition.entries)
    again.begin(1)
    again.fold([Record(1, text(DUEL), 1)])
    saved = json.loads(again.take_commit().entries["experiment/search"])["state"]
    assert (saved["tallies"]["accepted"], saved["open"]["clicks"]) == (1, 0)


def test_the_state_hash_does_not_depend_on_the_order_of_keys() -> None:
    one, other = {"a": 1, "b": {"c": 0.1, "d": None}}, {"b": {"d": None, "c": 0.1}, "a": 1}
    assert state_hash(one) == state_hash(other)
    assert state_hash(one) != state_hash({**one, "a": 2})


def test_canonical_numbers_are_shortest_and_exact() -> None:
    numbers = [0.1, 1e22, 5e-324, 1.7976931348623157e308, -0.0, 2.0**53 + 2]
    assert msgspec.json.decode(canonical(numbers)) == numbers
    assert canonical(0.1) == b"0.1"


def test_records_deleted_while_a_restart_reads_again_do_not_cut_the_log_off() -> None:
    partition = Partition()
    partition.fold(*(text(DUEL, id=f"d{number}") for number in range(10)))
    again = PartitionTask(config(), ClickLog("clicks", 2, lambda _: 0), 0, partition.entries)
    again.begin(0)
    again.fold(partition.log[:3])
    assert again.cut_off_at == 3
    again.miss(12)
    assert again.cut_off_at is None
