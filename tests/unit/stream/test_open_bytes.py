"""The memory of what is open in a partition is bounded, with and without restarts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable

import pytest

from streamduel.config import Config
from streamduel.stream.open_memory import OpenMemory
from streamduel.stream.task import PartitionTask
from streamduel.stream.team_patterns import MAX_PATTERN_RANKS
from streamduel.testing import CRASH, END_OF_POLL, Broker, Record, run
from tests.unit.stream.restarts import LOG

BOUND = 2**13
SINGLE, SEVERAL = ("search",), ("ads", "search", "shop")


def config(
    experiments: Iterable[str] = ("search",), bound: int = BOUND, window: int = 400, **changes: int
) -> Config:
    search = {"arms": ["x", "y"], "decide_every": 3, **changes}
    return Config.model_validate(
        {
            "source": {}, "sink": {}, "snapshots": {}, "limits": {"max_open_bytes": bound},
            "dedupe": {"window_records": window, "window_ms": 10**6},
            "experiments": dict.fromkeys(experiments, search),
        }
    )  # fmt: skip


def log(seed: int, count: int = 300, experiments: Iterable[str] = ("search",)) -> list[bytes]:
    """Impressions and their clicks, in any order, some of them long."""
    chance, names = random.Random(seed), list(experiments)
    records: list[tuple[int, dict[str, object]]] = []
    for number in range(count // 3):
        base: dict[str, object] = {"experiment": names[number % len(names)]}
        shown = {"type": "impression", "id": f"i-{number}", "a": "x", "b": "y",
                 "teams": ["a", "b"] * chance.choice([1, 5, 40])}  # fmt: skip
        records.append((number + chance.choice([0, 0, 20]), base | shown))
        for click in range(2):
            made = {"type": "click", "id": f"c-{number}-{click}", "impression": f"i-{number}",
                    "rank": click, "note": "x" * chance.choice([0, 0, 900])}  # fmt: skip
            records.append((number + chance.choice([0, 1, 5, 30]), base | made))
    return [json.dumps(record).encode() for _, record in sorted(records, key=lambda it: it[0])]


def visible(values: list[bytes], *crashes: int, experiments: Iterable[str] = SINGLE) -> Broker:
    faults: list[object] = list(values)
    for place in sorted(crashes, reverse=True):
        faults[place:place] = [END_OF_POLL, CRASH]
    broker = Broker(faults)  # type: ignore[arg-type]
    run(config(experiments), broker)
    return broker


@pytest.mark.parametrize("experiments", [SINGLE, SEVERAL])
@pytest.mark.parametrize("seed", range(4))
def test_restarts_close_the_same_windows(seed: int, experiments: Iterable[str]) -> None:
    values = log(seed, experiments=experiments)
    expected = visible(values, experiments=experiments)
    state = json.dumps([str(entry) for entry in expected.snapshots[0].entries.values()])
    assert '"unjoined":0' not in state
    for first in range(0, len(values), 23):
        found = visible(values, first, min(first + 7, len(values)), experiments=experiments)
        assert found.snapshots == expected.snapshots
        assert found.assignments == expected.assignments
        assert found.dead_letters == expected.dead_letters


def impression(number: int, experiment: str, **fields: object) -> bytes:
    shown = {"type": "impression", "id": f"i-{number}", "experiment": experiment, "a": "x",
             "b": "y", "teams": ["a", "b"], **fields}  # fmt: skip
    return json.dumps(shown).encode()


def click(number: int, experiment: str, on: int) -> bytes:
    made = {"type": "click", "id": f"c-{number}", "experiment": experiment, "impression": f"i-{on}",
            "rank": 0}  # fmt: skip
    return json.dumps(made).encode()


def begun(settings: Config, values: Iterable[bytes]) -> PartitionTask:
    task = PartitionTask(settings, LOG, 0)
    task.begin(0)
    task.fold([Record(at, value, 1) for at, value in enumerate(values)])
    return task


def restarted(settings: Config, task: PartitionTask, values: list[bytes]) -> PartitionTask:
    again = PartitionTask(settings, LOG, 0, task.take_commit().entries)
    assert again.resume_offset is not None
    again.begin(again.resume_offset)
    again.fold([Record(at, value, 1) for at, value in enumerate(values)][again.resume_offset :])
    return again


def test_many_experiments_that_fall_silent_share_the_bound() -> None:
    names = [f"e-{number:03}" for number in range(100)]
    values = [impression(10 * at + each, name) for at, name in enumerate(names)
              for each in range(10)]  # fmt: skip
    task = begun(config(names, window=10**6), values)
    opened = {name: len(it.attribution) for name, it in task.experiments.items()}
    assert sum(opened.values()) == 26  # of 316 bytes, within 8192 before the last
    assert opened["e-099"] == opened["e-098"] == 10
    learned = sum(it.policy.duels + len(it.buffer) for it in task.experiments.values())
    assert learned == len(values) - 26


def test_far_below_the_bound_a_snapshot_does_not_mention_it() -> None:
    values = log(1, experiments=SEVERAL)
    entry = begun(config(SEVERAL, bound=2**28), values).take_commit().entries["partition"]
    assert "evicted" not in json.loads(entry)
    entry = begun(config(SEVERAL), values).take_commit().entries["partition"]
    state = json.loads(entry)
    assert state.get("evicted", state["open_since"]) >= state["open_since"]


EARLY = [click(1, "ads", on=3), impression(1, "search"), impression(2, "ads"),
         impression(3, "ads")]  # fmt: skip
"""The click makes a restart read the impressions of `search` again, of which one is evicted."""


@pytest.mark.parametrize("settings", [
    config(["ads", "search"], 4096), config(["ads", "search"], 2**20), config(["search"], 4096),
    config(["ads", "search", "shop"], 4096),
])  # fmt: skip
def test_what_was_evicted_stays_so_with_another_bound_or_other_experiments(
    settings: Config,
) -> None:
    values = [*EARLY, *(impression(at, "ads") for at in range(4, 15))]
    task = begun(config(["ads", "search"], 4096), values)
    assert len(task.experiments["search"].attribution) == 0
    assert json.loads(task.take_commit().entries["partition"])["evicted"] == 1
    task = begun(config(["ads", "search"], 4096), values)
    again = restarted(settings, task, values)
    for each in (task, again):
        each.fold([Record(len(values), impression(99, "search"), 1)])
    assert len(again.experiments["search"].attribution) == 1
    if "ads" in settings.experiments and settings.limits.max_open_bytes == 4096:
        before = task.experiments["ads"].attribution
        assert len(again.experiments["ads"].attribution) == len(before)


def test_a_smaller_bound_credits_what_it_closes() -> None:
    values = [impression(at, "search") for at in range(100)]
    again = restarted(config(bound=4096), begun(config(bound=2**20), values), values)
    again.fold([Record(100, impression(100, "search"), 1)])
    experiment = again.experiments["search"]
    assert len(experiment.attribution) + experiment.policy.duels + len(experiment.buffer) == 101


def test_an_experiment_that_opens_often_takes_one_place() -> None:
    memory, asked = OpenMemory(1000), []
    for _ in range(3):
        memory.watch("search", memory.take(600))

    def oldest(name: str) -> None:
        asked.append(name)

    assert list(memory.overdue(oldest)) == []
    assert asked == ["search"]


def test_clients_of_silent_experiments_are_forgotten() -> None:
    names = [f"e-{number:02}" for number in range(50)]
    values = [impression(10 * at + each, name, client=f"u-{each}")
              for at, name in enumerate(names) for each in range(10)]  # fmt: skip
    task = begun(config(names, window=40, max_per_client=5), values)
    assert len(task._context.client_duels) <= 41
    assert len(task._context.client_duels._clients) <= 41


def test_experiments_share_their_patterns() -> None:
    names = [f"e-{number:02}" for number in range(20)]
    bits = [format(number, "010b") for number in range(1000)]
    values = [impression(at, names[at % 20], teams=["ab"[int(bit)] for bit in pattern])
              for at, pattern in enumerate(10 * bits)]  # fmt: skip
    task = begun(config(names, bound=2**30, window=10**6), values)
    seen = {id(shown.teams) for it in task.experiments.values()
            for shown in it.attribution._open.values()}  # fmt: skip
    assert len(seen) == len(bits) < MAX_PATTERN_RANKS // 11
