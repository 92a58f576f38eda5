"""Where control records come from: the click log, the control topic, or nowhere."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config import Config
from streamduel.connector import ControlMarker, ControlRecord, LogRecord, Snapshot
from streamduel.errors import SnapshotError
from streamduel.records import Control
from streamduel.stream import control_order, repair_commits, snapshot_reading
from streamduel.stream.control_order import ControlEntry
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.unit.stream.folding import CONTROL, DUEL, config, text

LOG = ClickLog("clicks", 1, lambda experiment: 0)
TOPIC = {"source": {"control_topic": "control"}}
OFF = {"limits": {"control_records": False}}


def control(number: int, **changes: Any) -> ControlRecord:
    return ControlRecord(number, b"search", text(CONTROL, id=f"c-{number}", **changes))


class Stream:
    """A partition whose configuration may change at a restart."""

    def __init__(self, **parts: Any) -> None:
        self.entries: dict[str, bytes] = {}
        self.log: list[LogRecord] = []
        self.letters: list[str] = []
        self.task = PartitionTask(config(**parts), LOG, 0)
        self.task.begin(0)

    def restart(self, **parts: Any) -> None:
        self.task = PartitionTask(config(**parts), LOG, 0, self.entries)
        assert self.task.resume_offset is not None
        self.task.begin(self.task.resume_offset)
        self.task.fold(self.log[self.task.resume_offset :])

    def fold(self, *items: bytes | ControlRecord | Sequence[ControlRecord]) -> tuple[Control, ...]:
        records: list[LogRecord] = []
        for offset, item in enumerate(items, len(self.log)):
            if isinstance(item, bytes):
                records.append(Record(offset, item, offset, b"search"))
            else:
                controls = [item] if isinstance(item, ControlRecord) else item
                records.append(ControlMarker(offset, offset, b"search", controls))
        self.log += records
        self.task.fold(records)
        commit = self.task.take_commit()
        self.entries.update(commit.entries)
        self.letters += [str(it.content.error) for it in commit.dead_letters if it.content]  # type: ignore[union-attr]
        return tuple(commit.controls)

    @property
    def status(self) -> str:
        return self.task.experiments["search"].decisions.status

    def tallies(self) -> dict[str, int]:
        tallies = self.task.experiments["search"].tallies
        return {name: count for name, count in tallies.items() if count}


def control_entry(stream: Stream) -> ControlEntry | None:
    return snapshot_reading.read(stream.entries, 0, "")[0].control


def test_a_control_record_takes_effect_at_its_marker() -> None:
    stream = Stream(**TOPIC)
    stream.fold(text(DUEL, id="1"))
    [told] = stream.fold(control(0, actor="alice@bastion"))
    assert (told.action, told.actor) == ("pause", "alice@bastion")
    assert stream.status == "paused"
    assert stream.tallies() == {"accepted": 2}


def test_a_second_marker_is_a_duplicate() -> None:
    stream = Stream(**TOPIC)
    stream.fold(control(0), control(1, action="resume"))
    assert stream.fold(control(0), []) == ()
    assert stream.status == "running"
    assert stream.tallies() == {"accepted": 2, "duplicate": 2}


def test_a_marker_brings_all_records_up_to_its_own() -> None:
    stream = Stream(**TOPIC)
    told = stream.fold([control(0), control(3, action="resume")], [control(3), control(4)])
    assert [it.id for it in told] == ["c-0", "c-3", "c-4"]


def test_a_skipped_marker_takes_its_record_with_it() -> None:
    stream = Stream(**TOPIC)
    stream.fold(text(DUEL))
    stream.entries |= repair_commits.skip(Snapshot(1, stream.entries), 0, 1, "by hand").entries
    stream.restart(**TOPIC)
    stream.fold(control(0))
    stream.restart(**TOPIC)
    assert stream.task.controls.next == 1  # it is not forwarded again
    stream.fold(control(0), control(1, action="note", text="later"))
    assert stream.status == "running"
    assert stream.tallies() == {"accepted": 2, "duplicate": 1}


def test_a_repeated_id_takes_effect_once() -> None:
    stream = Stream(**TOPIC)
    again = control(0)._replace(offset=5)
    stream.fold(control(0), control(1, action="resume"), again)
    assert stream.status == "running"
    stream.restart(**TOPIC)
    stream.fold(again._replace(offset=6))
    assert stream.tallies() == {"accepted": 2, "duplicate": 2}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (b"{", "the value is not JSON: it ends too early"),
        (None, "the value is null (a tombstone); a record is a JSON object"),
        (text(DUEL), "the control topic 'control' takes control records only (found a 'duel')"),
        (text(CONTROL, action="retire_arm"), "'retire_arm' must name an 'arm' (found none)"),
    ],
    ids=["json", "tombstone", "duel", "incomplete"],
)
def test_an_invalid_record_of_the_control_topic_is_a_dead_letter(
    value: bytes | None, sentence: str
) -> None:
    stream = Stream(**TOPIC)
    stream.fold(ControlRecord(7, b"search", value), control(8))
    assert stream.letters == [f"{sentence} (offset 7 of the control topic 'control')."]
    assert stream.tallies() == {"accepted": 1, "dead_letter": 1}
    assert stream.status == "paused"


def test_a_control_record_in_the_click_log_is_a_dead_letter() -> None:
    stream = Stream(**TOPIC)
    stream.fold(text(CONTROL))
    assert stream.letters == [
        "control records come from source.control_topic 'control' (found one in the click log); "
        "`streamduel control` writes them there."
    ]
    assert stream.status == "running"
    assert stream.tallies() == {"dead_letter": 1}


def test_without_a_control_topic_a_marker_is_a_dead_letter() -> None:
    stream = Stream()
    stream.fold(encode({"type": "control_marker", "id": "m", "experiment": "search"}))
    assert stream.letters == [
        "a 'control_marker' is written by streamduel itself, and this one names no record of "
        "source.control_topic, or none is configured: its record then takes effect once it is."
    ]


@pytest.mark.parametrize("parts", [OFF, {**OFF, **TOPIC}], ids=["log", "topic"])
def test_switched_off_each_control_record_is_a_dead_letter(parts: dict[str, Any]) -> None:
    stream = Stream(**parts)
    stream.fold(text(CONTROL), *([control(0)] if "source" in parts else []))
    off = "control records are switched off (limits.control_records: false)"
    there = f"{off} (offset 0 of the control topic 'control')."
    assert stream.letters == [f"{off}.", *([there] if "source" in parts else [])]
    assert stream.status == "running"


def test_the_origin_may_change_and_older_records_are_judged_as_before() -> None:
    stream = Stream()
    stream.fold(text(CONTROL, id="1"))
    assert control_entry(stream) is None
    stream.restart(**TOPIC)
    stream.fold(text(CONTROL, id="2", action="resume"), control(0, action="resume"))
    assert stream.status == "running"
    stream.restart(**OFF, **TOPIC)
    stream.fold(control(1))
    stream.restart(**TOPIC)
    stream.fold(control(1), control(2))
    assert (stream.status, len(stream.letters)) == ("paused", 2)
    entry = control_entry(stream)
    assert entry is not None
    assert entry.origins == [(0, "log"), (1, "topic"), (3, "off"), (4, "topic")]
    takes = [stream.task.controls.takes_marker(offset) for offset in range(5)]
    assert takes == [False, True, True, True, True]
    assert (entry.topic, entry.next) == ("control", 3)


def test_another_control_topic_is_refused() -> None:
    stream = Stream(**TOPIC)
    stream.fold(control(0))
    with pytest.raises(SnapshotError, match=r"control_topic must stay 'control' \(found 'other'\)"):
        stream.restart(source={"control_topic": "other"})
    stream.restart()
    stream.fold(text(DUEL))
    with pytest.raises(SnapshotError, match="must stay 'control'"):
        stream.restart(source={"control_topic": "other"})


@pytest.mark.parametrize("topic", [None, "other"])
def test_a_replay_needs_a_control_topic_if_the_click_log_refers_to_it(topic: str | None) -> None:
    stream = Stream(**TOPIC)
    stream.fold(text(DUEL))
    order = control_order.ControlOrder("log" if topic is None else "topic", topic)
    order.judge_as(control_entry(stream))
    assert order.origins == [(0, "topic")]
    stream.fold(control(0))
    with pytest.raises(SnapshotError, match=r"a replay needs it as source\.control_topic"):
        order.judge_as(control_entry(stream))


def test_a_control_topic_without_a_record_may_be_replaced() -> None:
    stream = Stream(**TOPIC)
    stream.fold(text(DUEL))
    stream.restart(source={"control_topic": "other"})
    stream.fold(control(0))
    entry = control_entry(stream)
    assert entry is not None
    assert (entry.topic, stream.status) == ("other", "paused")


def test_a_recreated_control_topic_is_refused() -> None:
    stream = Stream(**TOPIC)
    stream.task.controls.continue_in("a")
    stream.fold(text(DUEL))
    stream.restart(**TOPIC)
    stream.task.controls.continue_in("b")  # no record of the former one took effect
    stream.fold(control(0))
    stream.restart(**TOPIC)
    stream.task.controls.continue_in(None)  # an older broker has no ids
    entry = control_entry(stream)
    assert entry is not None
    assert entry.log_id == "b"
    kept = control_order.moved(entry, same_controls=True)
    assert kept is not None
    assert (kept.next, kept.log_id) == (1, "b")
    again = control_order.moved(entry, same_controls=False)
    assert again is not None
    assert (again.next, again.log_id) == (0, None)
    with pytest.raises(SnapshotError, match=r"its id was b \(found c now\)\. .* repair new-log"):
        stream.task.controls.continue_in("c")


def log_of(rng: random.Random, count: int) -> list[LogRecord]:
    """Duels, plain control records, markers and repeated markers."""
    made: list[LogRecord] = []
    controls: list[ControlRecord] = []
    actions: list[Mapping[str, Any]] = [
        {"action": "pause"}, {"action": "resume"}, {"action": "reset"},
        {"action": "add_arm", "arm": "new"}, {"action": "retire_arm", "arm": "new"},
    ]  # fmt: skip
    for offset in range(count):
        chance = rng.random()
        if chance < 0.1:
            made.append(Record(offset, text(CONTROL, id=f"p-{offset}"), offset, b"search"))
        elif chance < 0.3:
            controls.append(control(3 * len(controls), **rng.choice(actions)))
            made.append(ControlMarker(offset, offset, b"search", [controls[-1]]))
        elif chance < 0.4 and controls:
            again = [rng.choice(controls)] if rng.random() < 0.5 else []
            made.append(ControlMarker(offset, offset, b"search", again))
        else:
            value = text(DUEL, id=f"d-{rng.randint(0, offset)}", winner=rng.choice("ab"))
            made.append(Record(offset, value, offset, b"search"))
    return made


@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    log = log_of(rng, 150)
    made = config(dedupe={"window_records": 30, "window_ms": 10**6}, **TOPIC)
    cuts = sorted(rng.sample(range(1, len(log)), data.draw(st.sampled_from([0, 5, 30]))))
    restarts = set(data.draw(st.lists(st.sampled_from(cuts)))) if cuts else set()
    assert _run(made, log, cuts, restarts) == _run(made, log, [], set())


def _run(
    made: Config, log: Sequence[LogRecord], cuts: Sequence[int], restarts: set[int]
) -> tuple[list[bytes], dict[str, bytes]]:
    visible: list[bytes] = []
    entries: dict[str, bytes] = {}
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    for begin, end in pairwise([0, *cuts, len(log)]):
        task.fold(log[begin:end])
        commit = task.take_commit()
        visible += [it.value for it in (*commit.assignments, *commit.dead_letters)]
        entries.update(commit.entries)
        if end in restarts:
            task.fold(log[end : end + 9])
            task = PartitionTask(made, LOG, 0, entries)
            assert task.resume_offset is not None
            task.begin(task.resume_offset)
            # A source delivers a marker that was passed before without its records.
            task.fold([_passed(it) for it in log[task.resume_offset : end]])
    return sorted(visible), entries


def _passed(record: LogRecord) -> LogRecord:
    return record._replace(controls=[]) if isinstance(record, ControlMarker) else record
