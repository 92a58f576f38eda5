"""What the duels of each segment say about the winner, and whether segments disagree.

Several segments are examined, so each is judged more strictly: with S segments, the probability of
any wrong claim in one of them is at most 1/S of 5 %. All intervals of all pairs of all segments
then hold together, at all times, with 95 % probability, so segments whose intervals of a pair do
not overlap differ by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.evidence import Winner
from streamduel.preference.verdict import LEVEL, PairResult, Verdict
from streamduel.preference.winners import condorcet_winner, wins_over


class SegmentResult(msgspec.Struct, frozen=True):
    """What one segment says.

    Attributes:
        champion: the arm that is the winner with 95 % confidence; None for undecided.
        leader: the arm that is ahead; None without a duel.
        confidence: that the leader is the winner, corrected for the number of segments.
        duels: of two different arms.
    """

    champion: str | None
    leader: str | None
    confidence: float
    duels: int


class Disagreement(msgspec.Struct, frozen=True):
    """Whether segments of one kind disagree.

    Attributes:
        verdict: opposite: one prefers an arm that another one does not; different: by how much;
            none: no difference is large enough to be sure of.
        sentence: the pair and the segments that differ most.
    """

    verdict: Literal["opposite", "different", "none"]
    sentence: str


class SegmentReport(msgspec.Struct, frozen=True):
    """What all segments say.

    Attributes:
        segments: by kind and name.
        disagreements: by kind, of kinds with several segments.
    """

    segments: dict[str, dict[str, SegmentResult]]
    disagreements: dict[str, Disagreement]


def judge_segments(
    names: Sequence[tuple[str, str]], wins: Integers, ties: Integers, arms: Sequence[str]
) -> SegmentReport:
    """Judge all segments.

    Args:
        names: S kinds and names.
        wins: (S, K, K), [s, i, j] is how often i has beaten j in segment s, without ties.
        ties: (S, K, K), symmetric.
        arms: K names.

    >>> wins = np.array([[[0, 700], [300, 0]], [[0, 300], [700, 0]]])
    >>> names = [("class", "navigational"), ("class", "informational")]
    >>> report = judge_segments(names, wins, 0 * wins, ["ltr", "bm25"])
    >>> {name: each.champion for name, each in report.segments["class"].items()}
    {'navigational': 'ltr', 'informational': 'bm25'}
    >>> print(report.disagreements["class"].sentence)
    Segments by class disagree by more than chance: ltr over bm25 has 0.700 (0.647 … 0.753) in \
navigational and 0.300 (0.247 … 0.353) in informational.
    """
    segments: dict[str, dict[str, SegmentResult]] = {}
    pairs: dict[str, dict[str, list[PairResult]]] = {}
    for (kind, name), won, tied in zip(names, wins, ties, strict=True):
        verdict = _verdict(won + tied / 2, tied.astype(np.float64), len(names))
        segments.setdefault(kind, {})[name] = _result(verdict, arms, len(names))
        met = [pair for pair in verdict.pairs(arms) if pair.duels]
        pairs.setdefault(kind, {})[name] = met
    disagreements = {
        kind: disagreement(kind, of_kind) for kind, of_kind in pairs.items() if len(of_kind) > 1
    }
    return SegmentReport(segments, disagreements)


def _verdict(wins: Floats, ties: Floats, looks: int) -> Verdict:
    leader, seeks = leader_of(wins)
    return Verdict.of(wins, ties, leader, seeks, level=1 - (1 - LEVEL) / looks)


def _result(verdict: Verdict, arms: Sequence[str], looks: int) -> SegmentResult:
    confidence = max(0.0, 1 - looks * (1 - verdict.confidence))
    duels = int(verdict.wins.sum())
    leader = arms[verdict.champion] if duels else None
    return SegmentResult(leader if confidence >= LEVEL else None, leader, confidence, duels)


def leader_of(wins: Floats) -> tuple[int, Winner]:
    """The arm that is ahead, and which winner it is by the counts.

    Of several arms that beat equally many others, the one with the most wins beyond its losses
    leads, and of these the first.

    >>> leader_of(np.array([[0.0, 6.0, 3.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    (0, 'condorcet')
    """
    best = condorcet_winner(wins)
    if best is not None:
        return best, "condorcet"
    beaten, lead = wins_over(wins), wins.sum(axis=1) - wins.sum(axis=0)
    return int(np.lexsort((-lead, -beaten))[0]), "copeland"


def disagreement(
    kind: str,
    segments: Mapping[str, Sequence[PairResult]],
    legible: Callable[[str], str] = str,
) -> Disagreement:
    """Whether segments of a kind differ by more than chance.

    Args:
        kind: of the segments.
        segments: the pairs of each, with intervals that hold together.
        legible: writes a name in the sentence.
    """
    found = contrast(segments, legible)
    if found is None:
        return Disagreement(
            "none",
            f"Segments by {legible(kind)}: no difference is large enough to be sure of.",
        )
    opposite, which = found
    verb = "disagree" if opposite else "differ"
    return Disagreement(
        "opposite" if opposite else "different",
        f"Segments by {legible(kind)} {verb} by more than chance: {which}.",
    )


def contrast(
    parts: Mapping[str, Sequence[PairResult]], legible: Callable[[str], str]
) -> tuple[bool, str] | None:
    """The pair whose win rates in two parts of the duels differ most, and by more than chance.

    Args:
        parts: the pairs of each, with intervals that hold together.
        legible: writes a name.

    Returns:
        whether the rates are on different sides of 1/2, and the pair with both; None if no
        intervals are apart.
    """
    by_pair: dict[tuple[str, str], list[tuple[str, PairResult]]] = {}
    for name, pairs in parts.items():
        for pair in pairs:
            by_pair.setdefault((pair.a, pair.b), []).append((name, pair))
    worst: tuple[bool, float, str] | None = None
    for (a, b), of_pair in by_pair.items():
        most = max(of_pair, key=lambda each: each[1].interval[0])
        least = min(of_pair, key=lambda each: each[1].interval[1])
        distance = most[1].interval[0] - least[1].interval[1]
        opposite = most[1].interval[0] > 0.5 > least[1].interval[1]
        if distance > 0 and (worst is None or (opposite, distance) > worst[:2]):
            rates = " and ".join(
                f"{_rate(pair)} in {legible(name)}" for name, pair in (most, least)
            )
            worst = (opposite, distance, f"{legible(a)} over {legible(b)} has {rates}")
    return None if worst is None else (worst[0], worst[2])


def _rate(pair: PairResult) -> str:
    low, high = pair.interval
    return f"{pair.win_rate:.3f} ({low:.3f} … {high:.3f})"
