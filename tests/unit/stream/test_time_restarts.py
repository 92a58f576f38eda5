"""Equal click logs give equal bytes, wherever restarts are, while clocks are wrong."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.config import Config
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from tests.unit.stream.folding import DUEL, config, text
from tests.unit.stream.restarts import LOG, Output, check_saved, run
from tests.unit.stream.test_attribution import START, click, impression
from tests.unit.stream.test_attribution_definition import among_others, noise

ADVANCE = 2_000
WINDOW = 5_000
YEAR_2100 = 4_102_444_800_000

KINDS = ("healthy", "first", "outliers", "a tenth", "gaps", "creeping", "chaos", "ts")


def made_of(**parts: Any) -> Config:
    search = {
        "join_window_ms": WINDOW, "decide_every": 3, "slate": 2,
        "guardrails": {"fallback": {"arm": "bm25", "idle_ms": 3_000}},
    }  # fmt: skip
    ads = {
        "arms": ["x", "y"], "policy": {"name": "c2b", "horizon": 500},
        "batch_deadline_ms": 4_000, "batch_republish_ms": 700, "batch_min_fill": 0.01,
    }  # fmt: skip
    made = config(search=search, time={"max_advance_ms": ADVANCE}, **parts)
    return made.model_validate(
        made.model_dump() | {"experiments": made.model_dump()["experiments"] | {"ads": ads}}
    )


def log_of(kind: str, rng: random.Random, step: int) -> list[Record]:
    """Impressions, clicks, duels and dead letters, with wrong timestamps of one kind."""
    log = among_others(noise(rng, 300, 300, step), rng, 0.3)
    times = [record.timestamp or 0 for record in log]
    late = 0
    for at in range(len(times)):
        chance = rng.random()
        if kind in {"gaps", "chaos"} and chance < 0.01:
            late += rng.choice([WINDOW // 2, 10 * WINDOW, 10**9])
        times[at] += late
        if kind == "first" and at in {0, 3, 17}:
            times[at] = YEAR_2100
        if kind in {"outliers", "chaos"} and 0.1 < chance < 0.13:
            times[at] = rng.choice([YEAR_2100, -1, times[at] - 10**8, times[at] + ADVANCE + 1])
        if kind == "a tenth" and chance < 0.1:
            times[at] += 3_600_000
        if kind == "creeping" and chance < 0.2:
            times[at] = max(times[max(0, at - 40) : at + 1]) + ADVANCE // 2
        if kind == "chaos" and 0.3 < chance < 0.6:
            times[at] += rng.randint(-3 * ADVANCE, 3 * ADVANCE)
    if kind == "ts":
        values = [
            record.value if record.value in {None, b"nonsense"}
            else json.dumps(json.loads(record.value or b"") | {"ts": max(0, time)}).encode()
            for record, time in zip(log, times, strict=True)
        ]  # fmt: skip
        return [
            record._replace(value=value, timestamp=None)
            for record, value in zip(log, values, strict=True)
        ]
    return [record._replace(timestamp=time) for record, time in zip(log, times, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_results_do_not_depend_on_chunks_and_restarts(data: st.DataObject, kind: str) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    step = data.draw(st.sampled_from([1, 41, 500]))  # 500: a few records in each block
    log = log_of(kind, rng, step)
    most, dedupe_ms = (
        data.draw(st.sampled_from([15, 10**6])),
        data.draw(st.sampled_from([WINDOW, 10**6])),
    )
    made = made_of(dedupe={"window_records": most, "window_ms": dedupe_ms})
    cuts = sorted(rng.sample(range(1, len(log)), data.draw(st.sampled_from([0, 5, 60]))))
    restarts = set(data.draw(st.lists(st.sampled_from(cuts)))) if cuts else set()
    assert run(made, log, cuts, restarts) == run(made, log, [], set())


@pytest.mark.parametrize("kind", KINDS)
def test_results_do_not_depend_on_a_restart_at_any_record(kind: str) -> None:
    log = log_of(kind, random.Random(kind), 41)[:150]
    made = made_of(dedupe={"window_records": 40, "window_ms": 10**6})
    whole = run(made, log, [], set())
    for cut in range(1, len(log), 2):
        assert run(made, log, [cut], {cut}) == whole


def test_the_logs_contain_all_cases() -> None:
    outliers, tallies = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for kind in KINDS:
        for seed in range(5):
            task = PartitionTask(made_of(), LOG, 0)
            task.begin(0)
            task.fold(log_of(kind, random.Random(seed), 1))
            outliers[kind] += task.time_outliers
            tallies[kind] += task.experiments["search"].tallies["accepted"]
    assert min(tallies.values()) > 300
    assert outliers["healthy"] == outliers["gaps"] == 0
    assert min(outliers[kind] for kind in ("first", "outliers", "a tenth", "chaos")) > 0


def set_during(
    made: Config, log: list[Record], resets: dict[int, int], restarts: set[int]
) -> Output:
    """Fold a click log record by record, setting stream time and restarting at some."""
    output = Output()
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    for at, record in enumerate(log):
        if at in resets:
            task.set_stream_time(resets[at])
        if at in restarts:
            output.take(task.take_commit())
            check_saved(task, output)
            task.fold(log[at : at + 9])
            task = PartitionTask(made, LOG, 0, output.entries)
            assert task.resume_offset is not None
            task.begin(task.resume_offset)
            task.fold([it for it in log[:at] if it.offset >= (task.resume_offset or 0)])
        task.fold([record])
    output.take(task.take_commit())
    return output


@pytest.mark.parametrize("kind", ["healthy", "outliers", "chaos"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_stream_time_that_was_set_survives_restarts(data: st.DataObject, kind: str) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    step = data.draw(st.sampled_from([1, 41, 500]))
    log = log_of(kind, rng, step)
    made = made_of(
        dedupe={"window_records": 60, "window_ms": data.draw(st.sampled_from([WINDOW, 10**9]))}
    )
    places = st.integers(1, len(log) - 1)
    resets = {
        at: max(1, (log[at].timestamp or 0) + data.draw(st.sampled_from([-(10**7), 0, 10**7])))
        for at in data.draw(st.sets(places, max_size=3))
    }
    restarts = data.draw(st.sets(places, max_size=8))
    assert set_during(made, log, resets, restarts) == set_during(made, log, resets, set())


@pytest.mark.parametrize("change", ["max_advance", "removed experiment"])
def test_restarts_after_a_change_of_the_configuration_are_exact(change: str) -> None:
    rng = random.Random(7)
    log = log_of("chaos", rng, 41)
    before = made_of(dedupe={"window_records": 10**6, "window_ms": 10**10})
    after = before.model_copy(
        update={"time": before.time.model_copy(update={"max_advance_ms": 10})}
        if change == "max_advance"
        else {"experiments": {"search": before.experiments["search"]}}
    )
    former = run(before, log[:150], [], set()).entries
    whole = continued(after, log, 150, former, set())
    for cut in (151, 160, 200, 230, 290):
        assert continued(after, log, 150, former, {cut}) == whole
    assert continued(after, log, 150, former, {155, 170, 215, 240}) == whole


def continued(
    made: Config, log: list[Record], begin: int, former: dict[str, bytes], restarts: set[int]
) -> Output:
    output = Output()
    output.entries = dict(former)
    for start, end in zip([begin, *sorted(restarts)], [*sorted(restarts), len(log)], strict=True):
        task = PartitionTask(made, LOG, 0, output.entries)
        assert task.resume_offset is not None
        task.begin(task.resume_offset)
        task.fold([it for it in log[:start] if it.offset >= (task.resume_offset or 0)])
        task.fold(log[start:end])
        output.take(task.take_commit())
    return output


@pytest.mark.parametrize("first", ["impression", "click"])
@pytest.mark.parametrize(
    ("before", "after", "gap", "outlier"),
    [(300_000, 60_000, 200_000, 0), (60_000, 300_000, 0, 200_000)],
    ids=["lowered", "raised"],
)
def test_what_is_open_survives_another_max_advance(
    before: int, after: int, gap: int, outlier: int, first: str
) -> None:
    """Stream time has followed a gap that it would not follow now, or the other way round."""
    duels = [text(DUEL, id=f"d-{number}") for number in range(60)]
    pairs = {
        "impression": [impression(number) for number in range(8)],
        "click": [click(number, number) for number in range(8)],
    }
    values = [*duels, *pairs.pop(first), text(DUEL, id="outlier")]
    gaps = [0] * 60 + [gap] * 8 + [gap + outlier]
    log = [
        Record(at, value, START + 100 * at + gaps[at], b"search") for at, value in enumerate(values)
    ]
    former, present = (
        config(search={"join_window_ms": 60_000}, time={"max_advance_ms": advance})
        for advance in (before, after)
    )
    entries = run(former, log, [], set()).entries
    task = PartitionTask(present, LOG, 0, entries)
    task.begin(task.resume_offset or 0)
    (others,) = pairs.values()
    now = START + 100 * len(log) + gap
    task.fold(log + [Record(at, it, now, b"search") for at, it in enumerate(others, len(log))])
    found = task.experiments["search"]
    assert found.open == {"impressions": 8, "clicks": 0}
    assert (found.tallies["late"], found.tallies["accepted"]) == (0, 61 + 16)


def undisturbed(made: Config, log: list[Record], advances: dict[int, int]) -> Output:
    """Fold a click log in one run; `max_advance_ms` changes before some of its records."""
    output = Output()
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    for begin, end in pairwise([*advances, len(log)]):
        task.clock.max_advance_ms = advances[begin]
        task.fold(log[begin:end])
    output.take(task.take_commit())
    return output


def reconfigured(
    made: Config, log: list[Record], advances: dict[int, int], kills: dict[int, int]
) -> Output:
    """Fold a click log, restarting at each change of `max_advance_ms` and at each kill.

    Args:
        made: the configuration.
        log: the click log.
        advances: the changes, by the first record after them.
        kills: how many records a restart re-reads until it is killed again, by the first record
            after both.
    """
    output, at = Output(), 0
    for begin, end in pairwise(sorted({*advances, *kills, len(log)})):
        at = begin if begin in advances else at
        time = made.time.model_copy(update={"max_advance_ms": advances[at]})
        setting = made.model_copy(update={"time": time})
        for reread in ([kills[begin]] if begin in kills else []) + [len(log)]:
            task = PartitionTask(setting, LOG, 0, dict(output.entries) or None)
            resume = task.resume_offset or 0
            task.begin(resume)
            task.fold([it for it in log[:begin] if it.offset >= resume][:reread])
            output.take(task.take_commit())
        task.fold(log[begin:end])
        output.take(task.take_commit())
        check_saved(task, output)
    return output


def without_limits(output: Output) -> Output:
    """Only restarts note from which record on they held."""
    entry = json.loads(output.entries["partition"])
    assert entry["resets"] == []
    del entry["limits"], entry["checksum"]
    output.entries["partition"] = json.dumps(entry).encode()
    return output


@pytest.mark.parametrize("kind", ["gaps", "outliers", "creeping", "chaos"])
@settings(max_examples=6, deadline=None, derandomize=True)
@given(data=st.data())
def test_another_max_advance_holds_for_the_records_after_the_restart(
    data: st.DataObject, kind: str
) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    log = log_of(kind, rng, data.draw(st.sampled_from([1, 41])))
    most = data.draw(st.sampled_from([60, 10**6]))
    dedupe_ms = data.draw(st.sampled_from([WINDOW, 10**7]))
    made = made_of(dedupe={"window_records": most, "window_ms": dedupe_ms})
    places, values = st.integers(1, len(log) - 1), st.sampled_from([10, ADVANCE, 10**6])
    changes = [0, *sorted(data.draw(st.sets(places, min_size=1, max_size=4)))]
    advances = {at: data.draw(values) for at in changes}
    kills = data.draw(st.dictionaries(places, st.integers(0, 300), max_size=6))
    found = reconfigured(made, log, advances, kills)
    assert without_limits(found) == without_limits(undisturbed(made, log, advances))
