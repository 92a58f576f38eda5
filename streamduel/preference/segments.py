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
        leader: the arm that is ahead; None if no arm beats another one.
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
    verdicts: dict[str, dict[str, Verdict]] = {}
    for (kind, name), won, tied in zip(names, wins, ties, strict=True):
        verdict = _verdict(won + tied / 2, tied.astype(np.float64), len(names))
        segments.setdefault(kind, {})[name] = _result(verdict, arms, len(names))
        verdicts.setdefault(kind, {})[name] = verdict
    disagreements = {
        kind: disagreement(kind, _pair_furthest_apart(of_kind, arms))
        for kind, of_kind in verdicts.items()
        if len(of_kind) > 1
    }
    return SegmentReport(segments, disagreements)


def _pair_furthest_apart(
    verdicts: Mapping[str, Verdict], arms: Sequence[str]
) -> dict[str, list[PairResult]]:
    """Of each segment, the pair whose intervals are furthest apart; empty without one.

    Results of all pairs would take a second with the most segments that are allowed.
    """
    pairs = np.triu_indices(len(arms), 1)
    bounds = [verdict.bounds(range(len(arms))) for verdict in verdicts.values()]
    lows, highs = (np.array([each[pairs] for each in ends]) for ends in zip(*bounds, strict=True))
    place = _furthest_apart(lows.max(axis=0), highs.min(axis=0))
    if place is None:
        return {}
    pair = [int(each[place]) for each in pairs]
    return {name: list(verdict.pairs(arms, pair)) for name, verdict in verdicts.items()}


def _verdict(wins: Floats, ties: Floats, looks: int) -> Verdict:
    leader, seeks = leader_of(wins)
    return Verdict.of(wins, ties, leader, seeks, level=1 - (1 - LEVEL) / looks)


def _result(verdict: Verdict, arms: Sequence[str], looks: int) -> SegmentResult:
    confidence = max(0.0, 1 - looks * (1 - verdict.confidence))
    leader = ahead(verdict, arms)
    champion = leader if confidence >= LEVEL else None
    return SegmentResult(champion, leader, confidence, int(verdict.wins.sum()))


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


def ahead(verdict: Verdict, arms: Sequence[str]) -> str | None:
    """The name of the arm that leads; None if it beats no other one: then it is only the first.

    Args:
        verdict: on the arm of `leader_of`.
        arms: K names.
    """
    beaten = wins_over(verdict.wins)[verdict.champion]
    return arms[verdict.champion] if beaten else None


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
    most = [max(each, key=lambda part: part[1].interval[0]) for each in by_pair.values()]
    least = [min(each, key=lambda part: part[1].interval[1]) for each in by_pair.values()]
    low = np.array([pair.interval[0] for _, pair in most])
    high = np.array([pair.interval[1] for _, pair in least])
    place = _furthest_apart(low, high)
    if place is None:
        return None
    rates = " and ".join(
        f"{_rate(pair)} in {legible(name)}" for name, pair in (most[place], least[place])
    )
    a, b = (legible(arm) for arm in list(by_pair)[place])
    return bool(low[place] > 0.5 > high[place]), f"{a} over {b} has {rates}"


def _furthest_apart(low: Floats, high: Floats) -> int | None:
    """The pair whose win rates in two parts differ most; None if no intervals are apart.

    Rates on different sides of 1/2 differ more than others.

    Args:
        low: (n,), of each pair the highest lower end of its intervals.
        high: (n,), the lowest upper end.
    """
    opposite = (low > 0.5) & (high < 0.5)
    order = np.lexsort((high - low, ~opposite))  # stable: of equal pairs the first
    return int(order[0]) if len(order) and low[order[0]] > high[order[0]] else None


def _rate(pair: PairResult) -> str:
    low, high = pair.interval
    return f"{pair.win_rate:.3f} ({low:.3f} … {high:.3f})"
