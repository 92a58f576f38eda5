"""Whether the leader's win rates change over time, for which confidence has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.analysis.counting import Rules
from streamduel.analysis.differences import difference
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.findings import Judged
from streamduel.analysis.report import Check
from streamduel.analysis.segments import judge_segments
from streamduel.errors import readable
from streamduel.preference.exponential import exp
from streamduel.preference.segments import contrast
from streamduel.stream.alarms import UNFAIR

MINUTE_MS: Final = 60_000
"""Quarters begin with minutes: to order all duels by their times would hold them in memory."""

CUTS: Final = ("the first quarter", "the first half", "the last quarter")
"""What is compared with the rest; a change at any moment is near one of their ends."""

QUARTERS: Final = tuple(f"the {place} quarter" for place in ("first", "second", "third", "last"))

FEW: Final = 100
"""Duels of a pair in a quarter, below which chance can explain nearly any rate."""


def judge_quarters(
    engine: Engine, arms: Mapping[str, Sequence[str]], credit: str, rules: Rules
) -> dict[str, dict[str, Judged]]:
    """What each quarter of the duels of each experiment says, in the order of time.

    Confidence and intervals are corrected for the number of quarters.
    """
    engine.run(
        "looking for changes",
        f"""
        CREATE TABLE quarters AS
        SELECT experiment, minute,
            (4 * (sum(n) OVER upto - n) // sum(n) OVER (PARTITION BY experiment))::INTEGER AS number
        FROM (SELECT experiment, ts // {MINUTE_MS} AS minute, sum(n) AS n FROM scored
            WHERE i <> j AND ts IS NOT NULL GROUP BY ALL)
        WINDOW upto AS (PARTITION BY experiment ORDER BY minute);
        CREATE VIEW by_quarter AS SELECT s.*, q.number FROM scored AS s JOIN quarters AS q
        ON q.experiment = s.experiment AND q.minute = s.ts // {MINUTE_MS}
        """,
    )
    named = [("quarter", name) for name in QUARTERS]
    found = judge_segments(engine, arms, credit, rules, named, view="by_quarter")
    return {name: each["quarter"] for name, each in found.items()}


def changes(
    engine: Engine,
    experiment: str,
    credit: str,
    most: float | None,
    quarters: Mapping[str, Judged],
    arms: Sequence[str],
    leader: str | None,
) -> Check:
    """Whether a win rate of the leader, or all together, change by more than chance.

    Args:
        engine: with the view `by_quarter`.
        experiment: its name.
        credit: the credit function that decides.
        most: the duels that a client counts for at most; None: all duels are independent.
        quarters: what each quarter says.
        arms: names.
        leader: one of them, or None.
    """
    name = "change over time"
    pairs = {
        quarter: [
            pair for pair in judged.pairs(arms) if leader in {pair.a, pair.b} and pair.duels >= FEW
        ]
        for quarter, judged in quarters.items()
    }
    if sum(map(bool, pairs.values())) < 2:
        return Check(name, "unknown", "Too few duels of the leader have times to compare.")
    changed = contrast(pairs, readable)
    which = changed[1] if changed else None
    if which is None and leader is not None:
        which = _together(engine, experiment, credit, most, leader, arms.index(leader))
    if which is None:
        sentence = "No change of the leader's win rates was large enough to be sure of."
        return Check(name, "fine", sentence)
    return Check(
        name,
        "warning",
        f"Preferences changed by more than chance: {which}. The result is about all"
        " duels together, and not about what users prefer now; see the days of the report.",
    )


def _together(
    engine: Engine, experiment: str, credit: str, most: float | None, leader: str, place: int
) -> str | None:
    """The clearest change of the leader's wins against all others; None if none is sure.

    Opponents count equally often before and after, so that other opponents are no change.
    """
    best: tuple[float, str] | None = None
    for quarters, part in enumerate(CUTS, 1):
        rows = f"""
            SELECT i + j AS stratum, number >= {quarters} AS is_second,
                {credit} = CASE WHEN i = {place} THEN 2 ELSE 0 END AS is_won, client, n AS times
            FROM by_quarter WHERE experiment = {quoted(experiment)}
                AND i <> j AND {place} IN (i, j) AND {credit} <> 1
        """
        found = difference(engine, rows, most)
        if found is None or 1 - 2 * len(CUTS) * exp(-found.evidence) <= UNFAIR:
            continue
        rates = (found.first, found.second) if quarters < len(CUTS) else (found.second, found.first)
        told = (
            f"{readable(leader)} wins {rates[0]:.1%} of its decided duels in {part} and"
            f" {rates[1]:.1%} in the rest, with opponents weighed alike"
        )
        best = max(best or (0.0, ""), (found.evidence, told))
    return None if best is None else best[1]
