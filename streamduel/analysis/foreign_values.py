"""Values of another program in the form that streamduel's records have, in SQL."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.fields import plain
from streamduel.analysis.kinds import Source
from streamduel.analysis.meanings import (
    check_names_of_sides,
    check_ties_are_told,
    is_mirrored,
    is_perspective,
    numbers_of_teams,
    winner_by_side,
)
from streamduel.analysis.tables import RARE
from streamduel.errors import ConfigurationError, shown

QUERY_IDS: Final = frozenset({"queryid", "qid", "searchid"})
"""Names of columns that identify a list in some logs, and in others a query, which is repeated.
There a record repeats another one only if all of `_CONTENT` is equal."""

_CONTENT: Final = (
    "id", "ts", "a", "b", "winner", "teams", "clicks", "clicks_a", "clicks_b", "clicked_docs",
    "client",
)  # fmt: skip

_HAS_WINNERS: Final = frozenset({"teams", "wins_a", "clicks_a"})
"""Fields that tell the winners; scores beside them are those of something else."""


def read_foreign_values(
    engine: Engine, source: Source, texts: MutableMapping[Any, str], factor: float
) -> None:
    """Give texts of another program the meaning that streamduel's records have."""
    sides = {"a": texts["a"], "b": texts["b"], "t": "'tie'"}
    values = {
        field: _kept_values(engine, source, field, texts)
        for field in ("winner", "teams")
        if field in texts
    }
    for field, table in values.items():
        check_names_of_sides(engine, source, field, table)
    if "winner" in texts:
        texts["winner"] = _winner(engine, source, texts, sides, values["winner"])
    elif won := [side for side in ("a", "b") if f"won_{side}" in source.columns.fields]:
        texts["winner"] = _winner_of_flags(source, sides, won)
        if len(won) == 1:
            flag = source.table.text(source.columns.fields[f"won_{won[0]}"])
            check_ties_are_told(engine, source, texts, f"won_{won[0]}", flag)
            column = source.columns.fields[f"won_{won[0]}"]
            engine.rows(f"INSERT INTO half_winners VALUES ({quoted(column)})")
    elif {"score_a", "score_b"} <= source.columns.fields.keys() and not _HAS_WINNERS & texts.keys():
        texts["winner"] = _winner_of_scores(engine, source, sides)
    if "teams" in texts:
        texts["teams"] = numbers_of_teams(engine, source, texts, values["teams"])
    if {"teams", "clicks"} <= texts.keys() and _are_flags(engine, source, texts):
        flags = (
            f"[CASE x WHEN '1' THEN 'true' ELSE 'false' END for x in entries({texts['clicks']})]"
        )
        texts["clicks"] = (
            f"CASE WHEN list_has_all(['0', '1'], entries({texts['clicks']}))"
            f" THEN '[' || array_to_string({flags}, ',') || ']' ELSE {texts['clicks']} END"
        )
    finished = (
        "winner" in texts
        or "clicks_a" in texts
        or ("teams" in texts and {"clicks", "clicked_docs"} & texts.keys())
    )
    if finished and plain(source.columns.fields.get("id", "")) in QUERY_IDS:
        values = dict(texts)
        if "ts" in texts:  # one moment has other texts in other formats
            values["ts"] = f"milliseconds({texts['ts']}, {factor})"
        content = ", ".join(values[field] for field in _CONTENT if field in values)
        texts["id"] = (
            f"CASE WHEN NOT is_nothing({texts['id']}) THEN json_array({content})::VARCHAR END"
        )


def _kept_values(engine: Engine, source: Source, field: str, texts: Mapping[str, str]) -> str:
    """The table of the different values of a field as `x`, with the rankers `a` and `b`."""
    values = source.table.values(x=texts[field], a=texts["a"], b=texts["b"])
    column = source.columns.fields[field][:80]
    return engine.keep(f"looking at '{column}' of {source.table.where}", f"FROM {values}")


def _winner(
    engine: Engine, source: Source, texts: Mapping[str, str], sides: Mapping[str, str], values: str
) -> str:
    """The winner by its column, and by that of the ties if there is one."""
    flag = texts["winner"]
    winner = winner_by_side(engine, source, flag, sides, values)
    if "ties" in texts:
        winner = f"CASE WHEN flag({texts['ties']}) THEN 'tie' ELSE {winner} END"
    if is_perspective(source) and not is_mirrored(engine, source, {**texts, "winner": winner}):
        check_ties_are_told(engine, source, texts, "winner", flag)
    return winner


def _are_flags(engine: Engine, source: Source, texts: Mapping[str, str]) -> bool:
    """Whether the clicks of lists are 0 or 1 for each rank, and so no ranks; but for mistakes."""
    clicks, teams = texts["clicks"], texts["teams"]
    (found,) = engine.rows(
        "SELECT sum(n) FILTER (len(flags) > 2 AND len(flags) = ranks"
        f" AND list_has_all(['0', '1'], flags)) >= {1 - RARE} * sum(n)"
        " FROM (SELECT n, entries(clicks) AS flags, len(entries(teams)) AS ranks"
        f" FROM {source.table.values(clicks=clicks, teams=teams)} WHERE clicks <> '')"
    )[0]
    return bool(found)


def _winner_of_flags(source: Source, sides: Mapping[str, str], won: Sequence[str]) -> str:
    """The winner by a column that tells whether a side has won, or by one for each side.

    With one column, false is a defeat, and nothing a tie.
    """
    fields, text = source.columns.fields, source.table.text
    flags = {side: f"flag({text(fields[f'won_{side}'])})" for side in won}
    a = flags.get("a", f"NOT {flags.get('b')}")
    b = flags.get("b", f"NOT {a}")
    tie = f"flag({text(fields['ties'])})" if "ties" in fields else "false"
    known = " AND ".join(f"is_flag({text(fields[f'won_{side}'])})" for side in won)
    wrong = f"concat_ws(', ', {', '.join(text(fields[f'won_{side}']) for side in won)})"
    return (
        f"CASE WHEN NOT ({known}) THEN {wrong} WHEN {tie} THEN 'tie' WHEN {a} AND NOT {b} THEN"
        f" {sides['a']} WHEN {b} AND NOT {a} THEN {sides['b']} ELSE 'tie' END"
    )


def _winner_of_scores(engine: Engine, source: Source, sides: Mapping[str, str]) -> str:
    """The winner where each side has a number: the side with the larger one.

    Raises:
        ConfigurationError: the columns have values, and none is a number.
    """
    columns = [source.columns.fields[f"score_{side}"] for side in ("a", "b")]
    texts = [source.table.text(column) for column in columns]
    a, b = (f"try_cast({text} AS DOUBLE)" for text in texts)
    named = " and ".join(f"'{column[:80]}'" for column in columns)
    numbers, example = engine.rows(
        f"SELECT count({a}) + count({b}), min(coalesce({', '.join(texts)})) FROM"
        f" {source.table.relation}"
    )[0]
    if not numbers and example is not None:
        raise ConfigurationError(
            f"{named} of '{source.table.where}' must be numbers, with a decimal point (found"
            f" {shown(example)})."
        )
    engine.rows(
        "INSERT INTO readings VALUES ('winner', 'fine', ?)",
        [f"The larger of {named} is taken as a victory of its side, and equal ones as a tie."],
    )
    return (
        f"CASE WHEN NOT coalesce(isfinite({a}) AND isfinite({b}), false)"
        f" THEN concat({texts[0]}, ' / ', {texts[1]})"
        f" WHEN {a} > {b} THEN {sides['a']} WHEN {b} > {a} THEN {sides['b']} ELSE 'tie' END"
    )
