"""A state that continues in another click log, and the repairs that the fold applies."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from streamduel.config import Config
from streamduel.connector import Snapshot
from streamduel.errors import ConfigurationError, SnapshotError
from streamduel.stream import snapshot, snapshot_reading
from streamduel.stream.repair_commits import Move, read, set_time, skip
from streamduel.stream.repairs import Repairs
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import FORMAT, READABLE, canonical, origin_entries
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.unit.stream.folding import CONTROL, DUEL, config, text

NOTE = "by a test"


def log(partitions: int, name: str = "clicks", identity: str = "one") -> ClickLog:
    """Both experiments live in the last partition."""
    return ClickLog(name, partitions, lambda experiment: partitions - 1, lambda partition: identity)


def folded(shape: ClickLog, made_of: Config | None = None) -> dict[int, Snapshot]:
    """The snapshots of a service that has folded three records in each partition."""
    found = {}
    for partition in range(shape.partitions):
        task = PartitionTask(made_of or config(), shape, partition)
        task.begin(0)
        task.fold([Record(at, value, 1000 + at) for at, value in enumerate(VALUES)])
        found[partition] = Snapshot(3, task.take_commit().entries)
    return found


VALUES = [
    text(DUEL, id="1"),
    text(CONTROL, action="add_arm", arm="late"),
    text(CONTROL, id="c-2", action="retire_arm", arm="ltr-v1"),
]


def moved(before: dict[int, Snapshot], shape: ClickLog, action: Any) -> dict[int, dict[str, bytes]]:
    saved = {partition: read(found, partition) for partition, found in before.items()}
    partitions = range(shape.partitions)
    move = Move(saved, shape, dict.fromkeys(partitions, 0), action, NOTE)
    return {each.partition: dict(each.entries) for each in move.commits()}


def state(entries: dict[str, bytes], name: str = "search") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entries[f"experiment/{name}"])["state"]
    return found


def test_another_id_is_refused_with_the_way_on() -> None:
    before = folded(log(1))
    with pytest.raises(SnapshotError) as refused:
        PartitionTask(config(), log(1, identity="two"), 0, before[0].entries)
    for words in ("'clicks'", "one", "two", "streamduel repair new-log"):
        assert words in str(refused.value)


def test_no_id_is_no_other_id() -> None:
    """State of format 6 has none, and takes the present one; it stays while the log has none."""
    without = ClickLog("clicks", 1, log(1).home)
    task = PartitionTask(config(), without, 0, folded(log(1))[0].entries)
    task.begin(3)
    task.fold([Record(3, text(DUEL, id="4"), 1003)])
    entries = task.take_commit().entries
    assert json.loads(entries["partition"])["log_id"] == "one"
    adopted = PartitionTask(config(), log(1), 0, folded(without)[0].entries)
    adopted.begin(3)
    adopted.fold([Record(3, text(DUEL, id="4"), 1003)])
    assert json.loads(adopted.take_commit().entries["partition"])["log_id"] == "one"


def test_an_id_that_comes_with_the_first_line_is_compared_again() -> None:
    found: list[str] = []
    late = log(1)._replace(log_id=lambda _: found[-1] if found else None)
    task = PartitionTask(config(), late, 0, folded(log(1))[0].entries)
    task.check_log()
    found.append("one")
    task.check_log()
    found.append("two")
    with pytest.raises(SnapshotError, match=r"with the id one \(found two now\)"):
        task.check_log()


def test_a_state_continues_at_the_start_of_a_new_log() -> None:
    before, shape = folded(log(1)), log(1, identity="two")
    entries = moved(before, shape, "new_log")[0]
    task = PartitionTask(config(), shape, 0, entries)
    assert task.resume_offset == task.next_offset == 0
    assert task.stream_time == 1002
    task.begin(0)
    old = state(dict(before[0].entries))
    present = json.loads(canonical(task.experiments["search"].state()))
    assert present == {**old, "added": {"late": -1}, "retired": {"ltr-v1": -1}}
    task.fold([Record(0, text(DUEL, id="1", b="late"), 2000)])
    commit = task.take_commit()
    assert not commit.dead_letters
    assert task.experiments["search"].decisions.epoch == old["assignment"]["epoch"] + 1
    task.fold([Record(1, text(DUEL, id="2", b="ltr-v1"), 2001)])
    letter = json.loads(task.take_commit().dead_letters[0].value)
    assert letter["error"] == "arm 'ltr-v1' of experiment 'search' was retired."


def test_the_origin_is_the_state_at_the_start() -> None:
    shape = log(1, identity="two")
    entries = moved(folded(log(1)), shape, "new_log")[0]
    origin = PartitionTask(config(), shape, 0, origin_entries(entries))
    task = PartitionTask(config(), shape, 0, entries)
    records = [Record(at, text(DUEL, id=str(at)), 2000 + at) for at in range(20)]
    for each in (origin, task):
        each.begin(0)
        each.fold(records)
    assert origin.take_commit().assignments == task.take_commit().assignments
    assert origin.experiments["search"].state() == task.experiments["search"].state()


def test_a_release_with_the_next_format_keeps_the_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = log(1, identity="two")
    entries = moved(folded(log(1)), shape, "new_log")[0]
    monkeypatch.setattr(snapshot, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(snapshot_reading, "READABLE", range(READABLE[0], FORMAT + 2))
    task = PartitionTask(config(), shape, 0, entries)
    task.begin(0)
    written = {**entries, **task.take_commit().entries}
    assert json.loads(written["partition"])["format"] == FORMAT + 1
    assert origin_entries(written) == origin_entries(entries) != {}
    assert PartitionTask(config(), shape, 0, written).next_offset == 0


def test_experiments_move_to_their_new_homes() -> None:
    before, shape = folded(log(2)), log(3)
    entries = moved(before, shape, "repartition")
    assert sorted(entries) == [0, 1, 2]
    assert "experiment/search" in entries[2]
    assert "experiment/search" not in entries[1]
    tasks = [PartitionTask(config(), shape, number, entries[number]) for number in range(3)]
    assert [task.next_offset for task in tasks] == [3, 3, 0]
    assert [sorted(task.experiments) for task in tasks] == [[], [], ["ads", "search"]]
    assert state(entries[2])["policy"] == state(dict(before[1].entries))["policy"]


def test_a_move_to_another_topic_begins_at_its_start() -> None:
    entries = moved(folded(log(2)), log(3, "views", "two"), "repartition")
    shape = log(3, "views", "two")
    tasks = [PartitionTask(config(), shape, number, entries[number]) for number in range(3)]
    assert [task.next_offset for task in tasks] == [0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "by_partition"),
    [(log(4), [3, 3, 0, 0]), (log(3, "views", "two"), [6, 0, 0]), (log(1, "views"), [6])],
)
def test_dead_letters_go_on_in_all_partitions_together(
    shape: ClickLog, by_partition: list[int]
) -> None:
    """The first new partition has those of former ones; experiments keep theirs."""
    before, refused = {}, [b"?", b"{}", text(DUEL, id="2", a="nobody")]
    for partition in range(2):
        task = PartitionTask(config(), log(2), partition)
        task.begin(0)
        task.fold([Record(at, value, 1000 + at) for at, value in enumerate(refused)])
        before[partition] = Snapshot(3, task.take_commit().entries)
    found = [
        json.loads(entries["partition"])["dead_letters"]
        for entries in moved(before, shape, "repartition").values()
    ]
    assert [sum(each.values()) for each in found] == by_partition
    task = PartitionTask(config(), shape, 0, moved(before, shape, "repartition")[0])
    assert sum(task.dead_letters.values()) == by_partition[0]


LOGIN = encode({"action_name": "login", "query_id": "q"})


def served(experiment: str, a: str, b: str) -> bytes:
    """A query of User Behavior Insights."""
    attributes = {"experiment": experiment, "a": a, "b": b, "teams": [a]}
    return encode(
        {"query_id": "q", "query_response_hit_ids": ["d"], "query_attributes": attributes}
    )


def test_a_new_partition_goes_on_with_the_latest_stream_time() -> None:
    """And with the counts of both former partitions, and no offsets of theirs."""
    made_of, before = config(source={"format": "ubi"}), {}
    former = log(2)._replace(home=["search", "ads"].index)
    for partition, (now, arms) in enumerate(((9000, ["bm25", "ltr-v1"]), (1000, ["x", "y"]))):
        task = PartitionTask(made_of, former, partition)
        task.begin(0)
        values = [served(["search", "ads"][partition], *arms), *[LOGIN] * (1 + partition)]
        task.fold([Record(at, value, now) for at, value in enumerate(values)])
        before[partition] = Snapshot(task.next_offset, task.take_commit().entries)
    shape = log(3, "views", "two")
    entries = moved(before, shape, "repartition")
    tasks = [PartitionTask(made_of, shape, number, entries[number]) for number in range(3)]
    assert [task.stream_time for task in tasks] == [9000] * 3
    assert [task.ignored.total() for task in tasks] == [3, 0, 0]
    tasks[2].begin(0)
    tasks[2].fold([Record(0, served("search", "bm25", "ltr-v1"), 4_102_444_800_000)])
    assert tasks[2].stream_time == 9000


@pytest.mark.parametrize(
    ("former", "shape", "control_topic", "sentence"),
    [
        ("control", log(3), "control", None),
        ("control", log(3), None, None),
        ("control", log(3), "control-2", "must stay 'control' (found 'control-2'): partitions of"),
        ("control", log(3, "views", "two"), "control-2", None),
        ("control", log(3, "views", "two"), None, None),
        ("control", log(3, "views", "two"), "control", "must be a new topic (found 'control' aga"),
        ("control", log(3, "clicks", "two"), "control", "took effect in 'clicks', and would once"),
        (None, log(3), "control", None),
        (None, log(3, "views", "two"), "control", None),
    ],
)
def test_the_control_topic_after_a_move(
    former: str | None, shape: ClickLog, control_topic: str | None, sentence: str | None
) -> None:
    before = folded(log(2), config(source={"control_topic": former}))
    saved = {partition: read(found, partition) for partition, found in before.items()}
    move = Move(saved, shape, dict.fromkeys(range(3), 0), "repartition", NOTE)
    if sentence is None:
        move.check_control_topic(control_topic)
        present = config(source={"control_topic": control_topic})
        for each in move.commits():  # it can be continued
            PartitionTask(present, shape, each.partition, each.entries)
    else:
        with pytest.raises(ConfigurationError, match=re.escape(sentence)):
            move.check_control_topic(control_topic)


def test_a_time_that_is_set_keeps_what_is_skipped() -> None:
    found = folded(log(1))[0]
    for write, value in ((skip, 3), (set_time, 5000), (set_time, 7000)):
        found = Snapshot(3, {**found.entries, **write(found, 0, value, NOTE).entries})
    repairs = read(found, 0).partition.repairs
    assert [(it.action, it.at, it.to) for it in repairs] == [("skip", 3, None), ("time", 3, 7000)]
    assert Repairs(repairs).waiting(3) == repairs
    assert [it.action for it in Repairs(repairs).waiting(4)] == ["time"]


def test_a_skipped_record_stays_skipped_after_a_restart() -> None:
    before = folded(log(1))[0]
    commit = skip(before, 0, 4, NOTE)
    entries = {**before.entries, **commit.entries}
    records = [Record(at, text(DUEL, id=str(at), b="ltr-v2"), 1000 + at) for at in range(3, 7)]
    log_so_far = [Record(at, value, 1000 + at) for at, value in enumerate(VALUES)] + records
    accepted = []
    for restart in (False, True):
        task = PartitionTask(config(), log(1), 0, entries)
        task.begin(task.resume_offset or 0)
        task.fold(log_so_far)
        entries = {**entries, **task.take_commit().entries} if not restart else entries
        accepted.append(task.experiments["search"].tallies["accepted"])
    assert accepted == [6, 6]
    again = Record(7, text(DUEL, id="4", b="ltr-v2"), 1007)
    task.fold([again])
    assert task.experiments["search"].tallies["accepted"] == 7, "it was never seen"
    with pytest.raises(ConfigurationError, match="the next record that partition 0 folds"):
        skip(Snapshot(7, entries), 0, 4, NOTE)
    waiting = {**entries, **skip(Snapshot(7, entries), 0, 9, NOTE).entries}
    with pytest.raises(ConfigurationError, match="is skipped already"):
        skip(Snapshot(7, waiting), 0, 9, NOTE)
