"""What the results of a peer should be, and whether they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from benchmarks.peers.job import EVERY, Duel, Result, decode

Wins = Mapping[str, int]


class Expected:
    """The right counts of a click log: repeated ids count once."""

    def __init__(self) -> None:
        self.wins: dict[str, Counter[str]] = {}
        self._seen: set[str] = set()

    def add(self, value: bytes) -> None:
        """Count a record of the log."""
        duel: Duel = decode(value)
        if duel.id not in self._seen:
            self._seen.add(duel.id)
            self.wins.setdefault(duel.experiment, Counter())[duel.pair] += 1

    @property
    def records(self) -> dict[str, int]:
        """Distinct duels of each experiment."""
        return {name: wins.total() for name, wins in self.wins.items()}


class Ledger:
    """The results of one run, in the order in which they became visible.

    Attributes:
        repeated: results for a number of records that was there already.
    """

    def __init__(self) -> None:
        self.repeated = 0
        self._seen: dict[str, set[int]] = {}
        self._last: dict[str, Result] = {}

    def add(self, result: Result) -> bool:
        """Add a result; returns whether it is further than all others of its experiment."""
        seen = self._seen.setdefault(result.experiment, set())
        self.repeated += result.records in seen
        seen.add(result.records)
        further = result.records > self.reached(result.experiment)
        if further:
            self._last[result.experiment] = result
        return further

    def reached(self, experiment: str) -> int:
        """The most records of an experiment in a result."""
        last = self._last.get(experiment)
        return last.records if last else 0

    def has(self, records: Mapping[str, int]) -> bool:
        """Whether the results have reached these numbers of records."""
        return all(self.reached(name) >= number for name, number in records.items())

    def mistakes(self, expected: Mapping[str, Wins]) -> list[str]:
        """What is wrong with the results, apart from repetitions; empty if nothing is."""
        found = []
        for name, wins in expected.items():
            total = sum(wins.values())
            last = self._last.get(name)
            if last is not None and last.wins is None:
                continue
            if last is None or last.records != total:
                found.append(f"{name}: {self.reached(name):,} records instead of {total:,}")
            else:
                missing = total // EVERY - len(self._seen[name])
                if missing:
                    found.append(f"{name}: {missing} results are missing")
                found += wrong_counts(name, last.wins or {}, wins)
        return found


def wrong_counts(name: str, found: Wins, expected: Wins) -> list[str]:
    """A sentence for an experiment whose wins are wrong, or nothing."""
    if dict(found) == dict(expected):
        return []
    wrong = sum(found.get(pair, 0) != expected.get(pair, 0) for pair in {*found, *expected})
    return [f"{name}: the wins of {wrong} pairs are wrong"]
