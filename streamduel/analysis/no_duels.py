"""Why a log has no duel that counts, for the sentence about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.analysis.rosters import RARE
from streamduel.analysis.tables import rejects
from streamduel.errors import counted, listed, nearest, readable
from streamduel.record_rules import ALLOWED

_ALLOWED: Final = {
    "winner": "the name of a ranker, a, b, left, right, first, second, L, R or tie",
    "clicks": "ranks, such as [1, 2] or 1,2, objects with a rank, or true or false for each rank",
    "teams": "an array or a text of a and b, left and right, L and R, or the names of two rankers",
}
"""What fields of other programs may contain."""


def why_no_duels(engine: Engine, experiment: str | None, ignored: Counter[str]) -> str:
    """Why there is no duel.

    Args:
        engine: with the joined records.
        experiment: the only one that counts; None: all.
        ignored: rows of other programs, by the reason for which they say nothing of a duel.
    """
    (rows,) = engine.rows("SELECT count(*) FROM events")[0]
    names = [
        str(name)
        for (name,) in engine.rows(
            "SELECT DISTINCT experiment FROM events WHERE experiment IS NOT NULL"
            " AND problem IS DISTINCT FROM 'JSON or size' ORDER BY 1"  # it names none
        )
    ]
    known = listed([readable(name, 80) for name in names], "'")
    if experiment is not None and experiment not in names:
        hint = nearest(experiment, names) or "."
        return (
            f"the log has no experiment '{readable(experiment, 80)}'{hint}"
            f" Its experiments are {known or 'none'}."
        )
    reasons = [*_reasons(engine, ignored)]
    return (
        f"the log has no duel in {counted(rows, 'record')}{''.join(f'; {why}' for why in reasons)}."
        f"{f' It names the experiments {known}.' if names[1:] else ''}"
    )


def _reasons(engine: Engine, ignored: Counter[str]) -> Iterator[str]:
    for reason, n in rejects(engine).items():
        yield f"{counted(n, 'row')} cannot be read because of {reason}"
    for problem, n, value, a, b, is_flat in engine.rows(
        "SELECT problem, count(*) AS n, min(unusable), arg_min(a, unusable), arg_min(b, unusable),"
        " bool_and(is_flat) FROM events"
        " WHERE problem <> 'arm' GROUP BY problem ORDER BY n DESC, problem LIMIT 1"
    ):
        rules = _ALLOWED if is_flat else ALLOWED
        example = f", such as '{readable(value, 80)}'" if value else ""
        if example and problem == "winner":
            example += f" of '{readable(a, 80)}' and '{readable(b, 80)}'"
        allowed = f", but {problem} must be {rules[problem]}" if problem in rules else ""
        yield f"{n:,} cannot be used because of their {problem}{example}{allowed}"
    for (clicks,) in engine.rows("SELECT count(*) FROM clicks WHERE outcome = 'unjoined'"):
        if clicks:
            yield (
                f"{clicks:,} are clicks whose list is not in the log: a list is a row with an id"
                " and teams, in this file or another one"
            )
    for (moment,) in engine.rows("SELECT max(row) FROM resets HAVING count(*) > 0"):
        yield f"a 'reset' forgets the records with an earlier time (record {moment + 1:,})"
    for what, table in (("arm", "unknown_arms WHERE is_rare"), ("experiment", "rare_experiments")):
        (rare,) = engine.rows(f"SELECT count(*) FROM {table}")[0]
        if rare:
            named = "ranker" if what == "arm" else what
            yield (
                f"{counted(rare, named)} with fewer than {RARE} records and a thousandth of all"
                f" are left out; --map {'a' if what == 'arm' else what}=COLUMN names another column"
            )
    if ignored:
        yield f"ignored: {', '.join(f'{n:,} {why}' for why, n in ignored.most_common(3))}"
