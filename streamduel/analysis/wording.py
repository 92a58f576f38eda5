"""Names and results as text; names come from outside."""

from __future__ import annotations

from streamduel.analysis.report import ExperimentAnalysis
from streamduel.errors import counted, readable
from streamduel.preference.verdict import at_least


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
    ahead = f"; {readable(found.leader)} is ahead" if found.leader else ""
    return f"undecided {after} ({confidence}){ahead}."


def doubt(found: ExperimentAnalysis) -> str | None:
    """What to say beside the result if checks have failed."""
    failed = list(dict.fromkeys(each.name for each in found.checks if each.verdict == "failed"))
    if not failed:
        return None
    checks = f"the check {failed[0]}" if len(failed) == 1 else f"the checks {', '.join(failed)}"
    return f"Do not rely on this result yet: {checks} failed."
