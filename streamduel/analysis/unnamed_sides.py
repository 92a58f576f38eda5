"""The two sides of a log that does not name its rankers in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.analysis.engine import Engine, name, quoted
from streamduel.analysis.fields import plain
from streamduel.analysis.kinds import Source
from streamduel.analysis.meanings import check_names
from streamduel.analysis.names import OF_SIDES, PLACES, SIDES_A, SIDES_B
from streamduel.analysis.tables import RARE
from streamduel.errors import ConfigurationError, listed
from streamduel.section import MAX_ARMS

MAX_UNNAMED: Final = 50
"""Columns in which the names of the rankers are looked for."""


def sides(engine: Engine, source: Source) -> tuple[str, str]:
    """The two arms of a row in SQL, in a log that does not name them in columns.

    They are called what the log calls them in `teams`, `winner`, or in the names of columns such as
    `control_clicks`. More than two rankers are found in the teams of each row.

    Raises:
        ConfigurationError: only the winners name more than two, or the rankers may be in other
            columns.
    """
    fields, table = source.columns.fields, source.table
    field = "teams" if "teams" in fields else "winner" if "winner" in fields else None
    if field is None:
        if OF_SIDES & fields.keys():
            _check_unnamed(engine, source)
        a, b = _named_by_columns(fields)
        return quoted(a), quoted(b)
    text = table.text(fields[field])
    each = "unnest(entries(x))" if field == "teams" else "x"
    found = engine.rows(
        "SELECT x, side_of(x, NULL, NULL, false), side_word(x) = plain(x) FROM (SELECT x, sum(n)"
        f" AS n FROM (SELECT {each} AS x, n FROM {table.values(x=text)}) GROUP BY x)"
        " WHERE side_of(x, NULL, NULL, false) <> '-'"
        " AND winner_of(x, NULL, NULL, false) IS DISTINCT FROM 't'"
        f" QUALIFY n > {RARE} * sum(n) OVER () ORDER BY x LIMIT 20"
    )
    words = {str(x): side for x, side, is_name in found if is_name}
    names = [str(x) for x, side, _ in found if side == "?"]
    if not names:
        a, b = sorted(words, key=words.__getitem__) if len(words) == 2 else ("a", "b")
        if len(words) != len(found) or len(set(words.values())) != 2:
            a, b = "a", "b"
        if PLACES & {a.lower(), b.lower()}:
            _check_unnamed(engine, source)
        return quoted(a), quoted(b)
    check_names(source, field, names)
    if len(words) == len(found) == 2:  # one may be called control
        names = list(words)
    are_sides = PLACES & {word.lower() for word in words}
    if field == "teams" and len(found) > 2 <= len(names) and not are_sides:
        return _of_teams(text)
    if len(names) == 2:
        return quoted(names[0]), quoted(names[1])
    raise ConfigurationError(
        f"{name(fields[field])} of '{table.where}' names {', '.join(names)}; with other than two "
        "rankers, name the columns of the two in each row: --map a=COLUMN --map b=COLUMN."
    )


def _of_teams(teams: str) -> tuple[str, str]:
    """The two rankers that the teams of a row name, in SQL; NULL if there are other than two."""
    names = f"list_distinct([x for x in entries({teams}) if side_of(x, NULL, NULL, false) <> '-'])"
    a, b = (f"CASE WHEN len({names}) = 2 THEN list_{end}({names}) END" for end in ("min", "max"))
    return a, b


def _named_by_columns(fields: Mapping[str, str]) -> tuple[str, str]:
    """The arms that the columns of the sides name, as `control_clicks` and `treatment_clicks` do.

    >>> _named_by_columns({"clicks_a": "control_clicks", "clicks_b": "treatment_clicks"})
    ('control', 'treatment')
    >>> _named_by_columns({"clicks_a": "clicks_left", "clicks_b": "clicks_right"})
    ('a', 'b')
    """
    named = {}
    for side, words in (("a", SIDES_A), ("b", SIDES_B)):
        columns = [plain(fields[it]) for it in OF_SIDES & fields.keys() if it.endswith(f"_{side}")]
        found = [it for it in words if it not in PLACES and any(it in each for each in columns)]
        named[side] = found[0] if found else None
    a, b = named["a"], named["b"]
    return ("a", "b") if a is None or b is None else (a, b)


def _check_unnamed(engine: Engine, source: Source) -> None:
    """Refuse to compare the sides of a log if other columns may name the rankers.

    A user who has named the column of the sides wants to compare sides.

    Raises:
        ConfigurationError: there are such columns.
    """
    table, used = source.table, {*source.columns.fields.values(), *source.columns.segments}
    others = [column for column in table.columns if column not in used][:MAX_UNNAMED]
    if not others or source.chosen & {"teams", "winner", *OF_SIDES}:
        return
    numbers = ", ".join(f"approx_count_distinct({table.text(column)})" for column in others)
    (row,) = engine.rows(f"SELECT {numbers} FROM {table.relation}")
    few = [column for column, n in zip(others, row, strict=True) if 0 < n <= 2 * MAX_ARMS]
    values = ", ".join(f"list(DISTINCT {table.text(column)})" for column in few)
    (row,) = engine.rows(f"SELECT {values} FROM {table.relation}") if few else [()]
    found = [column for column, each in zip(few, row, strict=True) if _may_be_rankers(each)]
    if found:
        columns = listed([column[:80] for column in found], "'")
        raise ConfigurationError(
            f"'{table.where}' names only sides in the columns that are recognised. If the rankers"
            f" are in {columns}, name their columns: --map a=COLUMN --map b=COLUMN; to compare"
            " sides, name the column of the winner: --map winner=COLUMN."
        )


def _may_be_rankers(values: Sequence[str] | None) -> bool:
    """Whether the distinct values of a column may be names of rankers."""
    names = [text for text in values or () if text and not _is_number(text) and text[0] != "{"]
    return 2 <= len(names) <= MAX_ARMS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.lower() in {"true", "false"}
    return True
