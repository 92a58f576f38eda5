"""Experiments in one process are independent."""

from __future__ import annotations

import gc
import json
import re
import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from streamduel.config import Config
from streamduel.connector import PartitionCommit
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, duel
from tests.logs import ARMS, values
from tests.unit.stream.restarts import LOG

START = 1_790_000_000_000
SEQUENTIAL: tuple[dict[str, Any], ...] = ({"name": "rucb"}, {"name": "double_thompson"})
BATCHED: dict[str, Any] = {"name": "c2b", "horizon": 2_000}


def named(count: int) -> list[str]:
    return [f"search-{number:03d}" for number in range(count)]


def config(
    experiments: Iterable[str],
    policies: Sequence[Mapping[str, Any]] = SEQUENTIAL,
    arms: Sequence[str] = ARMS,
    **sections: Any,
) -> Config:
    """Experiments with different policies, seeds and decision intervals, by number."""
    numbers = {name: int(name[-3:]) for name in experiments}
    settings = {
        name: {
            "arms": list(arms),
            "seed": number,
            "policy": policies[number % len(policies)],
            "decide_every": 1 + number % 5,
            "batch_republish_ms": 9_000,
        }
        for name, number in numbers.items()
    }
    places: dict[str, Any] = {"source": {}, "sink": {}, "snapshots": {}}
    return Config.model_validate({**places, "experiments": settings, **sections})


def log_of(experiments: Sequence[str], count: int) -> list[Record]:
    """Every type of record, with duplicates and invalid ones; timestamps never decrease.

    Ten records in a row have one id, which belongs to as many experiments.
    """
    return [
        Record(
            offset,
            re.sub(rb'"id": "search-\d+-(\d+)\d"', rb'"id": "\1"', value),
            START + offset * 90,
            name.encode(),
        )
        for offset, (name, value) in enumerate(values(11, count, experiments))
    ]


class Traces(NamedTuple):
    """The newest snapshot entry and all outputs of one experiment.

    A record that names no configured experiment belongs to none, whatever its key; its dead letter
    lists those that are configured, so such letters are left out.
    """

    entry: bytes
    assignments: list[bytes]
    dead_letters: list[bytes]


class Process:
    """A process that folds a click log to its end.

    Attributes:
        entries: of the newest snapshot.
        commits: all that became visible.
    """

    def __init__(
        self, settings: Config, log: Sequence[Record], entries: Mapping[str, bytes] | None = None
    ) -> None:
        self.entries = dict(entries or {})
        self.commits: list[PartitionCommit] = []
        task = PartitionTask(settings, LOG, 0, entries)
        start = task.resume_offset or 0
        task.begin(start)
        self._commit(task)
        for begin in range(start, len(log), 400):
            task.fold(log[begin : begin + 400])
            self._commit(task)

    def _commit(self, task: PartitionTask) -> None:
        self.commits.append(task.take_commit())
        self.entries.update(self.commits[-1].entries)

    def traces(self, experiment: str) -> Traces:
        key = experiment.encode()
        assignments = [m.value for c in self.commits for m in c.assignments if m.key == key]
        letters = [m.value for c in self.commits for m in c.dead_letters if m.key == key]
        known = [it for it in letters if json.loads(it)["reason"] != "unknown_experiment"]
        return Traces(self.entries[f"experiment/{experiment}"], assignments, known)


@pytest.mark.parametrize("change", ["added", "removed"])
def test_a_change_of_the_configuration_leaves_the_other_experiments_as_they_are(
    change: str,
) -> None:
    # The same click log in both runs, with records of the experiment before, while and after it is
    # configured. Time comes from the broker, and no id leaves the dedupe window by number, so
    # dedupe window and stream time are equal in both: records of an experiment that is not
    # configured do not move stream time, so those of the changed one are behind it.
    policies = (*SEQUENTIAL, BATCHED)
    all_of_them = named(12)
    changed = all_of_them[5]
    others = [name for name in all_of_them if name != changed]
    before, after = (others, all_of_them) if change == "added" else (all_of_them, others)
    window = {"window_ms": 20_000}
    log = [
        record if record.key != changed.encode() else record._replace(timestamp=START)
        for record in log_of(all_of_them, 4_000)
    ]
    former = Process(config(before, policies, dedupe=window), log[:2_000])
    as_it_was = Process(config(before, policies, dedupe=window), log, former.entries)
    with_change = Process(config(after, policies, dedupe=window), log, former.entries)

    for name in others:
        traces = as_it_was.traces(name)
        assert with_change.traces(name) == traces
        assert len(traces.assignments) > 5
    assert any(as_it_was.traces(name).dead_letters for name in others)
    # The change took place.
    assert as_it_was.traces(others[0]) != former.traces(others[0])
    ended = json.loads(with_change.entries[f"experiment/{changed}"])["ended_at"]
    assert ended == (None if change == "added" else 2_000)
    assert bool(with_change.traces(changed).assignments) == (change == "added")


def test_one_of_a_hundred_experiments_equals_one_alone() -> None:
    """Alone it reads its own records, at their offsets.

    Stream time is the partition's, so other experiments' records may move it. Here it never goes
    back, so at a record of the experiment it is that record's time in both logs. A batched policy
    also acts between its own records, when others' show that the time has come; so there is none.
    """
    experiments = named(100)
    log = log_of(experiments, 5_000)
    together = Process(config(experiments), log)
    decided = 0
    for name in experiments:
        own = [record for record in log if record.key == name.encode()]
        traces = together.traces(name)
        assert Process(config([name]), own).traces(name) == traces
        decided += len(traces.assignments)
    assert decided > 500


def memory(experiments: int, *rounds: int) -> list[int]:
    """Bytes used by a task with this number of experiments after some duels of each."""
    arms = ARMS[:4]
    settings = config(named(experiments), arms=arms, dedupe={"window_records": 1})
    results = [(a, b, winner) for a, b in permutations(arms, 2) for winner in "ab"]
    found = []
    gc.collect()
    tracemalloc.start()
    task = PartitionTask(settings, LOG, 0)
    task.begin(0)
    for number in range(max(rounds)):
        start = task.next_offset
        task.fold(
            [
                Record(offset, duel(name, offset, *results[number % len(results)]), START)
                for offset, name in enumerate(named(experiments), start)
            ]
        )
        task.take_commit()
        if number + 1 in rounds:
            gc.collect()
            found.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return found


def test_the_memory_of_an_experiment_is_bounded() -> None:
    memory(2, 1)  # allocate what is allocated once
    (few,) = memory(5, 25)
    many, settled, later = memory(25, 25, 425, 625)
    # 20.4 kB with four arms, in half a dozen runs within 0.1 kB: the codes of 24 possible duels
    # with their names 5 kB, some 30 arrays with their headers, and objects. A third more is a
    # regression.
    assert 6_700 < (many - few) / 20 < 27_000
    # To keep 200 duels more takes at least their codes, 8 bytes each. Nothing is kept, once the
    # timeline has its 20 changes of the champion; but numbers above 256, of duels and epochs, are
    # objects: 250 bytes in all.
    assert (later - settled) / 25 < 200 * 8 * 3 / 4


@pytest.mark.parametrize(("experiments", "hint"), [(50, "; did you mean 'search-003'?"), (51, "")])
def test_a_wrong_name_is_compared_with_a_limited_number(experiments: int, hint: str) -> None:
    """A service with a wrong name must not slow down a thousand experiments."""
    value = duel("serch-003", 1, ARMS[0], ARMS[1], "a")
    commits = Process(config(named(experiments)), [Record(0, value, START)]).commits
    (letter,) = (message for commit in commits for message in commit.dead_letters)
    sentence = json.loads(letter.value)["error"]
    listed = " Configured are" if hint else "; configured are"
    assert sentence.startswith(f"unknown experiment 'serch-003'{hint}{listed} 'search-000', ")
    assert sentence.endswith("'search-009', ….")
