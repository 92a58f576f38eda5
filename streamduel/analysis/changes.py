"""Whether the leader's win rates change over time, for which confidence has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.analysis.counting import Rules
from streamduel.analysis.engine import Engine
from streamduel.analysis.findings import Judged
from streamduel.analysis.report import Check
from streamduel.analysis.segments import judge_segments
from streamduel.errors import readable
from streamduel.preference.segments import contrast

MINUTE_MS: Final = 60_000
"""Quarters begin with minutes: to order all duels by their times would hold them in memory."""

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


def changes(quarters: Mapping[str, Judged], arms: Sequence[str], leader: str | None) -> Check:
    """Whether a win rate of the leader differs between quarters by more than chance."""
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
    if changed is None:
        sentence = "From quarter to quarter, the leader's win rates differ by no more than chance."
        return Check(name, "fine", sentence)
    return Check(
        name,
        "warning",
        f"Preferences changed by more than chance: {changed[1]}. The result is about all"
        " duels together, and not about what users prefer now; see the days of the report.",
    )
