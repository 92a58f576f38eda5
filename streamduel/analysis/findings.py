"""From counts to findings: champion, confidence and intervals, with clients as the unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from streamduel.analysis.counting import Counts, Rules
from streamduel.analysis.report import Finding
from streamduel.preference.clients import (
    ClientSums,
    confidence_of_clients,
    intervals_of_clients,
    log_evidence_of_clients,
)
from streamduel.preference.evidence import log_evidence, nats_of_all
from streamduel.preference.segments import ahead, leader_of
from streamduel.preference.verdict import LEVEL, PairResult, Verdict
from streamduel.preference.winners import wins_over

AT_ONCE: Final = 1000
"""Pairs whose intervals are computed together, in some megabytes."""


class Judged:
    """What the counts of one part of the duels say.

    The confidence is the smaller of two: with all duels taken as independent, as in the service,
    and with clients taken as independent. So it is never larger than that of the service.

    Args:
        counts: the duels.
        rules: which ties count.
        looks: the number of such parts that are reported; all are right together.

    Attributes:
        clients: sums over clients; None if no client has two duels of a pair.
        verdict: with duels as the unit.
        confidence: that the leader is the winner.
        confidence_of_duels: the same, if all duels were independent.
    """

    def __init__(self, counts: Counts, rules: Rules, looks: int = 1) -> None:
        self.counts, self.rules = counts, rules
        wins, ties = counts.wins(rules), counts.ties(rules)
        leader, self.seeks = leader_of(wins)
        level = 1 - (1 - LEVEL) / looks
        self.verdict = Verdict.of(wins, ties, leader, self.seeks, level)
        self.confidence = self.confidence_of_duels = self.verdict.confidence
        self.clients = counts.clients.get(rules.title)
        if self.clients is not None:
            by_clients = log_evidence_of_clients(self.clients)
            evidence = np.minimum(log_evidence(wins), by_clients)
            by_both = confidence_of_clients(evidence, leader, self.seeks)
            self.confidence = min(self.confidence, by_both)
        beaten = wins_over(wins)
        if np.count_nonzero(beaten == beaten.max()) > 1:  # none of them is the only best one
            self.confidence = self.confidence_of_duels = 0.0
        self.confidence = max(0.0, 1 - looks * (1 - self.confidence))

    @property
    def duels(self) -> int:
        """All duels that count."""
        return round(float(self.verdict.wins.sum())) + self.counts.alone

    def finding(self, arms: Sequence[str]) -> Finding:
        """The finding for people."""
        fought = float(self.verdict.wins.sum())
        leader = ahead(self.verdict, arms)
        return Finding(
            champion=leader if self.confidence >= LEVEL else None,
            confidence=self.confidence,
            duels=self.duels,
            leader=leader,
            ties=float(np.triu(self.verdict.ties).sum()) / fought if fought else 0.0,
        )

    def pairs(self, arms: Sequence[str]) -> list[PairResult]:
        """The pairs that met, those of the leader first."""
        found = [pair for pair in self.verdict.pairs(arms) if pair.duels]
        leader = arms[self.verdict.champion]
        found.sort(key=lambda pair: leader not in {pair.a, pair.b})  # stable
        if self.clients is None:
            return found
        return [
            pair
            for start in range(0, len(found), AT_ONCE)
            for pair in _widened(
                found[start : start + AT_ONCE], arms, self.clients, self.verdict.level
            )
        ]


def _widened(
    pairs: Sequence[PairResult], arms: Sequence[str], sums: ClientSums, level: float
) -> Iterator[PairResult]:
    """The pairs, each with the intervals of duels and of clients as one."""
    places = {arm: place for place, arm in enumerate(arms)}
    cells = [places[pair.a] for pair in pairs], [places[pair.b] for pair in pairs]
    lows, highs = intervals_of_clients(sums.at(cells), nats_of_all(len(arms), 1 - level))
    for pair, low, high in zip(pairs, lows.tolist(), highs.tolist(), strict=True):
        interval = min(low, pair.interval[0]), max(high, pair.interval[1])
        yield msgspec.structs.replace(pair, interval=interval)
