"""Names and results as text; names come from outside."""

from __future__ import annotations

import numpy as np

from streamduel.analysis.report import ExperimentAnalysis
from streamduel.errors import counted, readable
from streamduel.preference.verdict import PairResult, at_least
from streamduel.preference.winners import wins_over


def verdict(found: ExperimentAnalysis) -> str:
    """The result of an experiment, and whether segments prefer different rankers."""
    kinds = [kind for kind, each in found.disagreements.items() if each.verdict == "opposite"]
    if not kinds:
        return _result(found)
    by = " and by ".join(map(readable, kinds))
    return f"{_result(found)} Segments by {by} prefer different rankers."


def _result(found: ExperimentAnalysis) -> str:
    confidence = f"{at_least(found.confidence)} confidence"
    after = f"after {counted(found.duels - found.alone, 'duel')}"
    if found.alone:
        after += f" and {found.alone:,} of a ranker with itself"
    if found.champion is not None:
        wins = "wins"
        if found.seeks == "copeland":
            wins = "beats the most others" + (", none beats all," if found.no_winner else "")
        return f"{readable(found.champion)} {wins} with {confidence}, {after}."
    if found.no_winner:
        return f"no ranker beats all others (95 % confidence), and none beats the most, {after}."
    return f"undecided {after} ({confidence}){_ahead(found)}."


def _ahead(found: ExperimentAnalysis) -> str:
    """Who leads; none of several that beat equally many others, though a table names one first."""
    if found.leader is None:
        return ""
    beaten = wins_over(np.array(found.wins))
    equal = int(np.count_nonzero(beaten == beaten.max()))
    if equal == 1:
        return f"; {readable(found.leader)} is ahead"
    others = counted(int(beaten.max()), "other")
    return f"; {equal:,} rankers beat {others} each, and none beats more"


def doubt(found: ExperimentAnalysis) -> str | None:
    """What to say beside the result if checks have failed."""
    failed = list(dict.fromkeys(each.name for each in found.checks if each.verdict == "failed"))
    if not failed:
        return None
    checks = f"the check {failed[0]}" if len(failed) == 1 else f"the checks {', '.join(failed)}"
    return f"Do not rely on this result yet: {checks} failed."


def from_ahead(pair: PairResult, leader: str | None) -> tuple[str, str, float, tuple[float, float]]:
    """A pair, seen from the leader, or from the arm that is ahead in it; its win rate and interval.

    Args:
        pair: of two arms.
        leader: the arm that is ahead in all.
    """
    a, b, (low, high) = pair.a, pair.b, pair.interval
    rate = 0.5 if pair.win_rate is None else pair.win_rate
    if b == leader or (a != leader and rate < 0.5):
        return b, a, 1 - rate, (1 - high, 1 - low)
    return a, b, rate, (low, high)
