"""The outputs of a run, and an independent computation of what they should be."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tests.faults.kafka_runs import Run, read, records
from tests.faults.processes import inspect

Assignment = Mapping[str, Any]

FIRST_WINS = {"a": 1.0, "b": 0.0, "tie": 0.5}


class Evidence:
    """The records of a run's topics and its snapshots, by experiment.

    Attributes:
        log: offsets and records of the click log.
        assignments: in the order of publication.
        dead_letters: offsets and reasons.
        inspected: the output of `streamduel inspect`.
    """

    def __init__(self, run: Run) -> None:
        self.log: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for record in records(run.servers, run.log):
            self.log[record.key.decode()].append((record.offset, json.loads(record.value)))
        self.assignments: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for assignment in read(run.servers, run.assignments):
            self.assignments[assignment["experiment"]].append(assignment)
        self.dead_letters: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for record in records(run.servers, run.dead_letters):
            letter = json.loads(record.value)
            self.dead_letters[record.key.decode()].append((letter["offset"], letter["reason"]))
        self.inspected: dict[str, Any] = inspect(run.config)["experiments"]


class Account:
    """Duels and changes of arms, counted by the rules of docs/records.md.

    Args:
        arms: the experiment's first arms.
        log: offsets and records of the experiment.

    Attributes:
        arms: the arms at the end.
        rosters: the arms from each change on, with its offset; the first entry is the beginning.
        dead_letters: the offsets of records with an unknown arm.
        wins: [a, b] is how often a has beaten b.
    """

    def __init__(self, arms: Iterable[str], log: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        self.arms = list(arms)
        self.rosters = [(-1, tuple(self.arms))]
        self.accepted = self.duplicates = self.duels = 0
        self.dead_letters: list[int] = []
        self.wins: dict[tuple[str, str], float] = defaultdict(float)
        self._seen: set[str] = set()
        for offset, record in log:
            self._add(offset, record)

    def _add(self, offset: int, record: Mapping[str, Any]) -> None:
        if record["type"] == "control":
            change = {"add_arm": self.arms.append, "retire_arm": self.arms.remove}
            change[record["action"]](record["arm"])
            self.rosters.append((offset, tuple(self.arms)))
            self.accepted += 1
        elif not {record["a"], record["b"]} <= set(self.arms):
            self.dead_letters.append(offset)  # its id does not enter the dedupe window
        elif record["id"] in self._seen:
            self.duplicates += 1
        else:
            self._seen.add(record["id"])
            self.accepted += 1
            self._count(record["a"], record["b"], record["winner"])

    def _count(self, a: str, b: str, winner: str | None) -> None:
        self.duels += 1
        if winner is not None:
            self.wins[a, b] += FIRST_WINS[winner]
            self.wins[b, a] += 1 - FIRST_WINS[winner]

    @property
    def tallies(self) -> dict[str, int]:
        return {
            "accepted": self.accepted, "duplicate": self.duplicates,
            "dead_letter": len(self.dead_letters), "late": 0, "unjoined": 0, "capped": 0,
        }  # fmt: skip

    def matrix(self) -> list[list[float]]:
        return [[self.wins[a, b] for b in self.arms] for a in self.arms]

    def stretches(
        self, assignments: Sequence[Assignment]
    ) -> Iterator[tuple[tuple[str, ...], list[Assignment]]]:
        """The arms and the assignments between each two changes."""
        for (since, arms), (until, _) in pairwise([*self.rosters, (float("inf"), ())]):
            made = [each for each in assignments if since <= each["offset"] < until]
            yield arms, made


def batches(assignments: Iterable[Assignment]) -> list[list[Assignment]]:
    """The assignments of each batch of a batched policy.

    Each batch wants more duels of its pairs than the one before, so a batch begins where the
    `remaining` of a pair grows.
    """
    found: list[list[Assignment]] = []
    before: dict[tuple[str, str], int] = {}
    for assignment in assignments:
        if assignment["status"] == "running":
            now = {(pair["a"], pair["b"]): pair["remaining"] for pair in assignment["pairs"]}
            if any(remaining > before.get(pair, 0) for pair, remaining in now.items()):
                found.append([])
            found[-1].append(assignment)
            before = now
    return found
