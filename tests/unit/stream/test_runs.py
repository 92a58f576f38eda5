"""Records that are applied in runs give the same bytes as records applied one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from streamduel.connector import PartitionCommit
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.fold import MIN_RUN, Fold
from streamduel.stream.plain_run import RUN
from streamduel.stream.recovery import Recovery
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode
from tests.unit.stream.folding import ARMS, DUEL, Partition, config, text
from tests.unit.stream.restarts import LOG

HOUR = 3_600_000
NOW = 1_700_000_000_000
WRONG: tuple[bytes | None, ...] = (
    None,
    b"[",
    b"\xff",
    b'{"type": "duel"}',
    text({"type": "duel", "id": "x", "experiment": "search", "a": "x", "b": "y", "winner": "a"}),
    text({"type": "duel", "id": "x", "experiment": "none", "a": "x", "b": "y", "winner": "a"}),
    b'{"type":"duel","deep":' + b"[" * 300 + b"]" * 300 + b"}",
)


def a_value(luck: random.Random, number: int, trouble: float, shown: bool) -> bytes | None:
    """A duel or a finished impression, or with the probability `trouble` any other record."""
    name = "ads" if luck.random() < trouble else "search"
    first, second = luck.sample(["x", "y"] if name == "ads" else ARMS, 2)
    event: dict[str, Any] = {
        "type": "duel", "id": f"{number}", "experiment": name, "a": first, "b": second,
        "winner": luck.choice("ab"),
    }  # fmt: skip
    if luck.random() < 0.5:
        event["ts"] = NOW + number
    if luck.random() < 0.3:
        event["client"] = f"{number % 7}"
    if shown:
        event |= an_impression(luck, number)
        if luck.random() < trouble:
            event |= {"docs": ["x", "y", "z"], "query": "boots"}
    return encode(event) if luck.random() >= trouble else troubled(luck, number, event)


def an_impression(luck: random.Random, number: int) -> dict[str, Any]:
    team, *clicks = luck.choice([("a", 0), ("b", 2), ("a", 0, 1, 2), ("b", 1)])
    fields: dict[str, Any] = {"type": "interleaving", "teams": [team, "a", "b"], "clicks": clicks}
    if luck.random() < 0.3:
        fields |= {"epoch": 1 + luck.randrange(number // 30 + 1)}
    return fields


def troubled(luck: random.Random, number: int, event: dict[str, Any]) -> bytes | None:
    """A record that no run may contain, or one that is like the others."""
    again = f"{max(0, number - luck.randrange(40))}"
    changes: list[dict[str, Any]] = [
        {"id": again},
        {"winner": luck.choice(["tie", None])},
        {"query": luck.choice(["\u00e9" * 5, "q" * 500])},
        {"type": "interleaving", "teams": ["a", "b", None], "clicks": [luck.randrange(4)]},
        {"type": "impression", "teams": ["a", "b"]},
        {"type": "click", "impression": f"{number - 1}", "rank": 0},
        {"type": "control", "action": luck.choice(["pause", "resume", "reset"])},
    ]
    place = luck.randrange(len(changes) + 1)
    return luck.choice(WRONG) if place == len(changes) else encode(event | changes[place])


def a_log(seed: int, count: int) -> list[Record]:
    """A click log in stretches with more and with less trouble, and with jumps of time."""
    luck = random.Random(seed)
    stamped, now, trouble, log = luck.random() < 0.8, NOW, 0.0, []
    shown = False
    for number in range(count):
        if luck.random() < 0.01:
            trouble, shown = luck.choice([0.0, 0.0, 0.003, 0.05, 0.5]), luck.random() < 0.5
        now += luck.choice([0, 0, 0, 0, 1, 2]) + (luck.random() < 0.002) * luck.randrange(2 * HOUR)
        time = now - luck.randrange(3) + (luck.random() < 0.002) * luck.randrange(9 * HOUR)
        value = a_value(luck, number, trouble, shown)
        lost = not stamped or luck.random() < 0.002
        log.append(Record(number + number // 900, value, None if lost else time, b"search"))
    return log


def polls(log: Sequence[Record], luck: random.Random) -> Iterator[Sequence[Record]]:
    start = 0
    while start < len(log):
        length = luck.choice([1, 7, MIN_RUN, 100, 500, 5000])
        yield log[start : start + length]
        start += length


def soft_state(task: PartitionTask) -> tuple[Any, ...]:
    """The dedupe window as it is kept."""
    window = task.window
    window.trim()
    columns = window._times, window._offsets, window._firsts
    stretches = [column[window._head :].tolist() for column in columns]
    return window.keys, list(window.order), stretches, window.block_end


def folded(
    polls_of: Iterator[Sequence[Record]], settings: Any
) -> tuple[list[PartitionCommit], tuple[Any, ...]]:
    task = Partition(settings).task
    commits = []
    for records in polls_of:
        task.fold(records)
        commits.append(task.take_commit())
    return commits, soft_state(task)


@pytest.mark.parametrize("decide_every", [1, 60, 10_000])
@pytest.mark.parametrize("seed", range(5))
def test_runs_change_no_byte(seed: int, decide_every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    luck = random.Random(f"{seed} {decide_every}")
    settings = config(
        search={"decide_every": decide_every, "max_per_client": luck.choice([None, None, 5])},
        dedupe={
            "window_records": luck.choice([30, 1000, 100_000]),
            "window_ms": luck.choice([50, 10_000, HOUR]),
        },
    )
    log = a_log(seed, 3000)
    found = folded(polls(log, random.Random(seed)), settings)
    monkeypatch.setattr(Fold, "_apply_duels", lambda self, *run: False)
    assert folded(polls(log, random.Random(seed)), settings) == found


@pytest.mark.parametrize("event", [{"type": "duel", "winner": "a", "client": "u"}, {
    "type": "interleaving", "teams": ["a", "b"], "clicks": [0],
}], ids=["duel", "interleaving"])  # fmt: skip
def test_runs_make_room_for_memory_as_single_records_do(event: dict[str, Any]) -> None:
    settings = config(search={"decide_every": 5}, limits={"max_open_bytes": 4096})
    first, second = ARMS[:2]
    parts = {"type": "impression", "teams": ["a", "b"]}
    bodies = [{"type": "duel", "winner": "b"}] * 40 + [parts] * 14 + [event] * 30
    log = [
        Record(
            at, encode({"id": f"{at}", "experiment": "search", "a": first, "b": second} | body), NOW
        )
        for at, body in enumerate(bodies)
    ]

    def outcome(length: int) -> tuple[Any, ...]:
        partition = Partition(settings)
        for start in range(0, len(log), length):
            partition.task.fold(log[start : start + length])
        output = partition.task.take_commit()
        return output.assignments, output.entries

    assert outcome(1) == outcome(len(log))


def test_a_refused_record_keeps_no_others_in_memory() -> None:
    """A traceback would keep the frame that decoded them, in a cycle of references."""
    values = [*(text(DUEL, id=f"{number}") for number in range(5)), b"{", None]
    run = RecordDecoder(1000).leading([Record(at, value, NOW) for at, value in enumerate(values)])
    errors = [event for event in run if isinstance(event, Exception)]
    assert [(it.__traceback__, it.__context__) for it in errors] == [(None, None)] * 2


def test_new_duels_of_known_pairs_are_applied_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition(config(search={"decide_every": 1000}))
    values = [text(DUEL, id=f"{number}", winner="ab"[number % 2]) for number in range(800)]
    partition.fold(*values[:40])
    monkeypatch.delattr(Fold, "_apply_each")
    partition.fold(*values[40:])
    assert partition.tallies()["accepted"] == 800


def rebuilt(entries: dict[str, bytes], log: list[Record], settings: Any) -> tuple[Any, ...]:
    task = PartitionTask(settings, LOG, 0, entries)
    assert task.resume_offset is not None
    task.begin(task.resume_offset)
    task.fold([record for record in log if record.offset >= task.resume_offset])
    return soft_state(task), task.clock.state(), task.take_commit()


@pytest.mark.parametrize("seed", range(8))
def test_a_restart_rebuilds_the_window_in_runs_as_record_by_record(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(seed)
    settings = config(
        search={"decide_every": 60, "max_per_client": luck.choice([None, None, 5])},
        dedupe={"window_records": luck.choice([1000, 100_000]), "window_ms": 9 * HOUR},
    )
    log = a_log(seed, 3000)
    first = PartitionTask(settings, LOG, 0)
    first.begin(0)
    cut = luck.randrange(1500, 2900)
    first.fold(log[:cut])
    entries = dict(first.take_commit().entries)
    found = rebuilt(entries, log, settings)
    monkeypatch.setattr(Recovery, "_read_together", lambda self, records: False)
    assert rebuilt(entries, log, settings) == found


def test_a_restart_reads_plain_duels_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition(config(search={"decide_every": 1000}))
    partition.fold(*(text(DUEL, id=f"{number}") for number in range(800)))
    alone: list[int] = []
    read = Recovery._read_each

    def read_each(self: Recovery, records: Sequence[Any]) -> None:
        alone.append(len(records))
        read(self, records)

    monkeypatch.setattr(Recovery, "_read_each", read_each)
    again = partition.restarted()
    assert alone == [RUN]  # the clock has no limit yet
    again.fold(*(text(DUEL, id=f"{number}") for number in range(790, 810)))
    assert again.tallies()["duplicate"] == 10


def test_a_restart_forgets_what_named_an_arm_before_it_joined() -> None:
    partition = Partition(config(search={"decide_every": 1000}))
    early = text(DUEL, id="early", b="late")
    join = {"type": "control", "id": "join", "experiment": "search", "action": "add_arm"}
    values = [text(DUEL, id=f"{number}") for number in range(600)]
    partition.fold(*values[:300], early, *values[300:], text(join, arm="late"))
    again = partition.restarted()
    again.fold(early)
    assert again.tallies()["duplicate"] == 0
    assert again.tallies()["accepted"] == 602
