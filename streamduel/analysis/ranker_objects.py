"""Lists whose two rankers have a field of an object, or a place in an array, each.

Such as `"clicks": {"bm25": 1, "ltr": 0}`; or `"rankers": ["bm25", "ltr"]` and `"clicks": [1, 0]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from streamduel.analysis.fields import Chosen, Columns, find_columns, plain
from streamduel.analysis.names import CLICK_COUNTS, NAMES, PLACES, RANKERS, SCORES
from streamduel.analysis.result_objects import with_columns
from streamduel.analysis.tables import Table, read_json

WON: Final = ("won", "win", "wins", "iswinner", "haswon")
"""What other programs call the column that says whether a ranker has won: the larger number wins,
as of scores."""

NUMBERS: Final = (("clicks", CLICK_COUNTS), ("score", (*WON, *SCORES)))
"""The fields of the numbers of a side, and what logs call such a number of one ranker."""

SHARE: Final = 0.9
"""Share of the values of a column that must be those of two rankers."""

PAIRS: Final = (*(f"{it}s" for it in RANKERS), "pair", *(f"{it}pair" for it in RANKERS))
"""What other programs call an array of the two rankers of a list."""


def with_rankers(table: Table, rows: Sequence[Mapping[str, Any]], chosen: Chosen) -> Table | None:
    """The table with columns for both rankers; None if they are in no objects and arrays.

    Args:
        table: the lists.
        rows: its first rows.
        chosen: the columns that the user has named.
    """
    if (numbers := _find_fields(table, rows, chosen)) is not None:
        return _of_fields(table, *numbers)
    if (arrays := _find_arrays(table, rows, chosen)) is not None:
        return _of_arrays(table, arrays)
    return None


def score_of(text: str) -> str:
    """A number, in SQL; true is 1 and false 0."""
    return f"coalesce(try_cast({text} AS DOUBLE), flag({text})::DOUBLE)::VARCHAR"


def _find_fields(
    table: Table, rows: Sequence[Mapping[str, Any]], chosen: Chosen
) -> tuple[str, str] | None:
    """The column of objects with a number for each ranker, and whether these are clicks or scores.

    None if there is none, or if other columns name the rankers or tell the winners.
    """
    for field, words in NUMBERS:
        names = {
            word + end + by
            for word in words for end in ("", "s") for by in ("", *(f"by{it}" for it in RANKERS))
        }  # fmt: skip
        for column in table.columns:
            values = [value for row in rows if isinstance(value := row.get(column), dict)]
            if plain(column) not in names or not values:
                continue
            told = _told(table, chosen, column)
            if told.tell_winners or {"a", "b"} & told.fields.keys():
                return None
            if sum(map(_is_of_two, values)) >= SHARE * len(values):
                return column, field
    return None


def _is_of_two(value: Mapping[str, Any]) -> bool:
    """Whether an object has a number for each of two rankers.

    >>> [_is_of_two(value) for value in ({"bm25": 1, "ltr": 0}, {"a": 1, "b": 0}, {"ltr": 2})]
    [True, False, False]
    """
    numbers = {key: number for key, number in value.items() if number is not None}
    return (
        len(numbers) == 2
        and not PLACES.issuperset(map(plain, numbers))
        and all(isinstance(number, int | float) for number in numbers.values())
    )


def _of_fields(table: Table, column: str, field: str) -> Table:
    """The table with the two rankers of an object, and their numbers, as columns."""
    objects = f"try_cast(try_cast({table.text(column)} AS JSON) AS MAP(VARCHAR, VARCHAR))"
    both = f"list_sort([each for each in map_entries({objects}) if each.value IS NOT NULL])"
    values = {}
    for place, side in enumerate("ab", 1):
        number = f"{both}[{place}].value"
        values[side] = f"CASE WHEN len({both}) = 2 THEN {both}[{place}].key END"
        values[f"{field}_{side}"] = score_of(number) if field == "score" else number
    return with_columns(table, values, [column])


def _find_arrays(
    table: Table, rows: Sequence[Mapping[str, Any]], chosen: Chosen
) -> dict[str, str] | None:
    """The columns of arrays with both rankers, and with their clicks or scores; None without.

    The latter are `clicks` or `score`, or the `winner` by its place in the array, and missing if
    other columns tell the winner. Teams of lists with two results are no such arrays: not every
    user clicks on both.
    """
    pair = _column(table, rows, PAIRS, _are_two_rankers)
    if pair is None:
        return None
    for field, words in NUMBERS:
        names = (*words, *(f"{word}s" for word in words))
        if numbers := _column(table, rows, names, _are_two_numbers):
            return {"pair": pair, field: numbers}
    places = (*(f"{it}{end}" for it in ("winner", "winning") for end in ("index", "idx")),
              *NAMES["winner"])  # fmt: skip
    if winner := _column(table, rows, places, _is_place):
        return {"pair": pair, "winner": winner}
    told = _told(table, chosen, pair)
    return {"pair": pair} if told.tell_winners and not {"a", "b"} & told.fields.keys() else None


def _column(
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    is_fit: Callable[[object], bool],
) -> str | None:
    """The column with one of these names whose values are fit."""
    for column in table.columns:
        if plain(column) not in names:
            continue
        given = [value for row in rows if (value := row.get(column)) not in (None, "")]
        values = list(map(_value_of, given))
        if values and sum(map(is_fit, values)) >= SHARE * len(values):
            return column
    return None


def _value_of(value: object) -> object:
    """A value, or the array or number that a text contains, as in CSV.

    >>> _value_of("['bm25', 'ltr']"), _value_of("[0, 1.5]"), _value_of("1"), _value_of("ltr")
    (['bm25', 'ltr'], [0, 1.5], 1, None)
    """
    if not isinstance(value, str):
        return value
    found = read_json(value)
    if found is None and value.startswith("["):  # as Python and DuckDB write it
        return [each.strip("' ") for each in value.strip("[]").split(",")]
    return found


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1


def _told(table: Table, chosen: Chosen, column: str) -> Columns:
    """What the other columns tell."""
    others = [
        each for each in table.columns if each != column and not each.startswith(f"{column}.")
    ]
    return find_columns(others, chosen, typed=False)


def _are_two_rankers(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(each, str) for each in value)
        and len({*value}) == len(value) == 2
    )


def _are_two_numbers(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(each, int | float) for each in value)
    )


def _of_arrays(table: Table, arrays: Mapping[str, str]) -> Table:
    """The table with the two rankers of an array, and their numbers, as columns."""
    values = {}
    pair = f"entries({table.text(arrays['pair'])})"
    for field, column in arrays.items():
        if field == "winner":
            values[field] = f"{pair}[whole({table.text(column)}) + 1]"
            continue
        entries = f"entries({table.text(column)})"
        for place, side in enumerate("ab", 1):
            entry = f"CASE WHEN len({entries}) = 2 THEN {entries}[{place}] END"
            name = side if field == "pair" else f"{field}_{side}"
            values[name] = score_of(f"({entry})") if field == "score" else entry
    return with_columns(table, values, list(arrays.values()))
