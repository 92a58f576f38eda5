"""Records in a column of each row: as text of JSON in a table, or as in the dump of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from streamduel.analysis.engine import quoted
from streamduel.analysis.fields import OF_LISTS, OF_LISTS_ONLY, Chosen, find_columns, plain
from streamduel.analysis.names import ENVELOPES
from streamduel.analysis.tables import (
    Row,
    Table,
    decoded,
    is_step,
    path_of,
    read_json,
    rows_as_json,
)

MAX_TEXTS: Final = 8
"""Columns of text that are read as JSON; each of them is read once more in each row."""

SHARE: Final = 0.9
"""Share of the texts of a column that must be JSON; some may be cut off."""


def unwrapped(
    table: Table, rows: Sequence[Row], is_log: Callable[[Sequence[Row]], bool]
) -> Table | None:
    """The records in a column of each row, where they are a log by themselves.

    Args:
        table: such as a dump of a topic, with the offset and the time of each record.
        rows: its first rows.
        is_log: whether some rows are those of a known program.
    """
    if is_log(rows):
        return None
    for column in _columns(rows):
        inner = [each for row in rows if (each := _object_of(row.get(column))) is not None]
        if 2 * len(inner) >= len(rows) and is_log(inner):
            record = f"json ->> {quoted(path_of(column))}"
            value = f"CASE WHEN json_valid({record}) THEN ({record})::JSON END"
            return _of_json(table, value, _broker_time(rows))
    return None


def _broker_time(rows: Sequence[Row]) -> str:
    """The broker's time of each record in the dump of a topic, in SQL; empty if there is none.

    >>> print(_broker_time([{"topic": "clicks", "partition": 0, "offset": 7, "ts": 1790000000000}]))
    json ->> '$."ts"'
    """
    columns = _columns(rows)
    times = [each for each in ("timestamp", "ts") if {each, "partition", "offset"} <= {*columns}]
    return f"json ->> {quoted(path_of(times[0]))}" if times else ""


def with_objects(table: Table, rows: Sequence[Row]) -> Table | None:
    """The table with JSON in place of text, if a column of text has objects or arrays of them."""
    texts = {column: values for column in _columns(rows) if (values := _parsed(rows, column))}
    if not any(map(_are_objects, texts.values())):
        return None
    parts = []
    for column in list(texts)[:MAX_TEXTS]:
        text = f"(json ->> {quoted(path_of(column))})"
        value = f"CASE WHEN json_valid({text}) THEN {text}::JSON ELSE to_json({text}) END"
        parts.append(f"{quoted(column)}, {value}")
    return _of_json(table, f"json_merge_patch(json, json_object({', '.join(parts)}))")


def unnested(table: Table, rows: Sequence[Row], chosen: Chosen) -> Table | None:
    """The table with the fields of an object that holds the record beside those around it.

    Its arrays and objects are then where those of other logs are. Where both have a field of the
    same name, the one around it counts, unless only the object tells of rankers or clicks. An
    object of which the user has named a field stays as it is.
    """
    for column in _columns(rows):
        values = [value for row in rows if (value := row.get(column)) is not None]
        if plain(column) not in ENVELOPES or 2 * len(values) < len(rows):
            continue
        is_named = any(each.startswith(f"{column}.") for each in chosen.wanted)
        if is_named or not all(isinstance(value, dict) for value in values):
            continue
        around = f"json_merge_patch(json, json_object({quoted(column)}, NULL))"
        inner = f"coalesce(json -> {quoted(path_of(column))}, '{{}}')"
        others = [{key: row[key] for key in row if key != column} for row in rows]
        is_record = _may_tell(values) and not _told(others)
        order = (around, inner) if is_record else (inner, around)
        return _of_json(table, f"json_merge_patch({', '.join(order)})")
    return None


def _told(rows: Sequence[Row]) -> bool:
    """Whether some fields tell of rankers, lists or clicks.

    >>> _told([{"query_id": "q-1", "results": []}]), _told([{"offset": 7, "headers": []}])
    (True, False)
    """
    told = find_columns(_columns(rows), Chosen([]), typed=False).fields.keys()
    return bool(told & {*OF_LISTS, *OF_LISTS_ONLY, "docs"})


def _may_tell(rows: Sequence[Row]) -> bool:
    """Whether some fields may do so: also those of a ranker alone, arrays and objects.

    >>> _may_tell([{"id": "q-1", "scores": {"ltr": 2}}]), _may_tell([{"id": "phone-1"}])
    (True, False)
    """
    of_ranker = any(plain(column) in {"ranker", "model", "arm"} for column in _columns(rows))
    inner = (isinstance(value, list | dict) for row in rows for value in row.values())
    return _told(rows) or of_ranker or any(inner)


def _object_of(value: object) -> Row | None:
    """An object, or the one that a text of JSON contains.

    >>> _object_of('{"a": 1}'), _object_of({"b": 2}), _object_of("abba")
    ({'a': 1}, {'b': 2}, None)
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return decoded(value)
    return value if isinstance(value, dict) else None


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns, in their order; objects of segments are read as they are."""
    names = dict.fromkeys(chain.from_iterable(rows))
    return [each for each in names if is_step(each) and not each.startswith("segment")]


def _parsed(rows: Iterable[Row], column: str) -> list[Any]:
    """The objects and arrays in a column of text; none if many texts are something else."""
    texts = [text for row in rows if (text := row.get(column)) is not None and text != ""]
    found = [
        value
        for text in texts
        if isinstance(text, str) and text.lstrip().startswith(("{", "["))
        and isinstance(value := read_json(text), dict | list)
    ]  # fmt: skip
    return found if len(found) >= SHARE * len(texts) else []


def _are_objects(values: Iterable[dict[str, Any] | list[Any]]) -> bool:
    """Whether all values are objects or arrays of objects.

    >>> _are_objects([{"a": 1}]), _are_objects([[{"rank": 2}], []]), _are_objects([["d1"]])
    (True, True, False)
    """
    inner = chain.from_iterable(each if isinstance(each, list) else [each] for each in values)
    return all(isinstance(each, dict) for each in inner)


def _of_json(table: Table, value: str, broker_time: str = "") -> Table:
    """A table of JSON, from the rows of another one as JSON."""
    time = f", {broker_time} AS broker_time" if broker_time else ""
    relation = f"(SELECT {value} AS json{time} FROM {rows_as_json(table)})"
    return replace(
        table, relation=relation, columns={}, is_json=True, has_broker_time=bool(broker_time)
    )
