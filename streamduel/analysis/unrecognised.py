"""Why a file cannot be read as a table, where its columns do not say it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import Chosen, find_columns
from streamduel.analysis.service_rules import LIMITS
from streamduel.analysis.tables import Table
from streamduel.errors import ConfigurationError, shortened


def why_empty(engine: Engine, table: Table) -> str:
    """Why a table has no column and no object of JSON."""
    largest = 0
    if table.whole:
        (largest,) = engine.rows(f"SELECT max(strlen(json)) FROM {table.whole}")[0]
    if (largest or 0) <= LIMITS.max_record_bytes:
        return f"'{table.where}' has no JSON object and no column."
    return (
        f"'{table.where}' has a JSON object of {largest:,} bytes, and none of at most"
        f" {LIMITS.max_record_bytes:,}. If the records are in an array inside of it, write each"
        " as a line of its own, such as with jq -c '.data[]'."
    )


def rows_inside(rows: Sequence[Mapping[str, Any]]) -> str:
    """Advice for a log that is one JSON object, if an array inside of it may have the records.

    >>> rows_inside([{"took": 5, "hits": {"hits": [{"_id": "1"}]}}]).partition("such as ")[2]
    "with jq -c '.hits.hits[]'."
    """
    path = _array_of_objects(rows[0]) if len(rows) == 1 else None
    if path is None:
        return ""
    return (
        " If the records are in the array inside, write each as a line of its own, such as with"
        f" jq -c '{path}[]'."
    )


def check_rows(where: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a log that is one JSON object with all values of each column, as pandas writes it.

    Raises:
        ConfigurationError: it is one.
    """
    columns = list(rows[0].values()) if len(rows) == 1 else []
    lengths = {len(each) if isinstance(each, dict | list) else 0 for each in columns}
    if len(columns) > 1 and len(lengths) == 1 and max(lengths) > 1:
        raise ConfigurationError(
            f"'{where}' has one JSON object with the values of each column; write an object for"
            " each row, such as with pandas.DataFrame.to_json(…, orient='records', lines=True)."
        )


def _array_of_objects(row: Mapping[str, Any], depth: int = 3) -> str | None:
    """The path of jq to an array of objects: the longest one of those that are least deep."""
    plain = {key: value for key, value in row.items() if key.isascii() and key.isidentifier()}
    arrays = {
        key: len(value)
        for key, value in plain.items()
        if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    if arrays:
        return f".{max(arrays, key=arrays.__getitem__)}"
    for key, value in plain.items():
        if depth > 1 and isinstance(value, dict) and (inner := _array_of_objects(value, depth - 1)):
            return f".{key}{inner}"
    return None


def unfit_header(table: Table, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the first line of CSV is no header, where that can be seen."""
    if not table.lines:
        return None
    first = table.lines[0]
    found = f"(found '{shortened(first, 60)}')"
    key, brace, _ = first.partition("\t{")
    if brace:
        return (
            f"each line of '{table.where}' must be a record {found}; remove what is before it, such"
            f" as with cut -f{key.count(chr(9)) + 2}-."
        )
    for number, line in enumerate(table.lines[1:], 2):
        names = _names(line)
        is_other = len(names) != len(_names(first)) or first.startswith("sep=")
        if is_other and find_columns(names, Chosen([]), typed=False).tell_winners:
            return (
                f"the header of '{table.where}' must be its first line {found}; line {number} looks"
                f" like one ('{shortened(line, 60)}'): remove the lines before it."
            )
    values = [each for each in _names(first) if each]
    is_row = any(row.get(column) == column for row in rows for column in table.columns)
    if is_row or len(set(values)) < len(values):  # no header names two columns alike
        return (
            f"the first line of '{table.where}' must be a header with names of columns {found}; it"
            " has values of the rows after it, so put a header before it."
        )
    return None


def _names(line: str) -> list[str]:
    """The names of columns in a header, whatever separates them."""
    return [each.strip(' "') for each in re.split(r"[,;|\t]", line)]
