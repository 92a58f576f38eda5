"""Files as tables of DuckDB: their columns, and each column's value as text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from streamduel.analysis.engine import Engine, name, quoted
from streamduel.analysis.inputs import File
from streamduel.config.model import LimitSettings
from streamduel.errors import ConfigurationError

SAMPLE: Final = 1000
"""Rows from which the kind of a log is detected."""

MAX_KEYS: Final = 1000
"""Fields of JSON objects that are looked at; the most frequent ones."""

MAX_LEVELS: Final = 6
"""Levels of objects in objects whose fields are looked for; change logs of databases have four."""

MAX_SINGLE: Final = 64
"""Up to so many files are looked at one by one, so that lists and clicks may have columns of the
same name with another meaning; more are parts of one table."""

RARE: Final = 0.001
"""Share of the rows up to which a value that fits no other is a mistake."""

OUTER, INNER = "outer", "inner"
"""Types of the fields of JSON objects: whether the object itself has it, or an object inside; the
fields of a struct are inside."""

MAX_REJECTS: Final = 100_000
"""Errors of a file of CSV that DuckDB stores in each scan, to count the rows that it cannot read; a
row has one for each column that is missing."""

_JSON: Final = "to_json(struct_pack(*COLUMNS(*)))"
"""A row as JSON, in SQL; an alias of the table could be the name of a column, too."""

UNCOUNTED: Final = " (at least so many)"
"""Behind the reason of rows of which some are not counted."""

PLAIN: Final = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "BOOLEAN", "UUID",
)  # fmt: skip

TIMES: Final = ("TIMESTAMP", "DATE")
"""Beginnings of the types of times, whose text is a number of milliseconds since 1970."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows of one kind.

    Attributes:
        relation: what is after FROM.
        columns: the names of the columns and their types; of JSON, those of the objects' fields.
        is_json: whether a row is a JSON object, in the column `json`.
        where: the file or the query, for error sentences.
        whole: of files of JSON, what is after FROM with the rows that are too large.
        lines: the first lines of CSV.
        has_broker_time: whether the relation has the broker's time of each record, as text in the
            column `broker_time`.
        is_own: whether the rows are streamduel's own records, in which "null" is a name.
    """

    relation: str
    columns: dict[str, str]
    is_json: bool
    where: str
    whole: str = ""
    lines: Sequence[str] = ()
    has_broker_time: bool = False
    is_own: bool = False

    def text(self, column: str, *, quotes: bool = False) -> str:
        """The value of a column as text, in SQL; arrays and objects are JSON.

        Args:
            column: its name; nested fields have dots.
            quotes: of JSON: keep the quotes of a string, to distinguish it from an array.
        """
        if self.is_json:
            steps = [column] if self.columns.get(column) == OUTER else column.split(".")
            path = path_of(*steps)
            if self.is_own and not quotes:
                return f"(json ->> {quoted(path)})"  # NULL for null
            arrow = "->" if quotes else "->>"
            return f"nullif((json {arrow} {quoted(path)})::VARCHAR, 'null')"
        if self.columns.get(column, INNER) == INNER and "." in column:
            root, rest = column.split(".", 1)
            path = path_of(*rest.split("."))
            return f"(to_json({name(root)}) ->> {quoted(path)})"
        return _text_of(self.columns[column], name(column))

    def values(self, **texts: str) -> str:
        """The different values of some texts in SQL, and as `n` in how many rows each of them is.

        All rows are read, because they may be in any order, such as that of their rankers.
        """
        selected = ", ".join(f"{text} AS {column}" for column, text in texts.items())
        return f"(SELECT {selected}, count(*) AS n FROM {self.relation} GROUP BY ALL)"


def _text_of(kind: str, value: str) -> str:
    if kind == "VARCHAR":
        return f"trim({value})"  # CSV may have ', ' between values
    if kind.startswith(TIMES):
        return f"epoch_ms({value}::TIMESTAMPTZ)::VARCHAR"
    if kind in PLAIN or kind.startswith(("ENUM", "DECIMAL")):
        return f"{value}::VARCHAR"
    if kind == "JSON":
        return f"({value} ->> '$')"  # a string without quotes
    return f"to_json({value})::VARCHAR"


def is_step(key: str) -> bool:
    """Whether a path of DuckDB can name the key."""
    return bool(key) and '"' not in key and "\\" not in key


def path_of(*steps: str) -> str:
    """The path to a field of JSON objects."""
    return "$" + "".join('."' + step.replace('"', '\\"') + '"' for step in steps)


def tables(engine: Engine, files: Sequence[File]) -> list[Table]:
    """The tables of the files.

    Raises:
        StreamduelError: DuckDB cannot read a file.
    """
    if len(files) <= MAX_SINGLE:
        return [table(engine, [file]) for file in files]
    groups: dict[tuple[object, ...], list[File]] = {}
    for file in files:
        key = file.format, file.compression, file.layout, file.lines[:1]
        groups.setdefault(key, []).append(file)
    return [table(engine, group) for group in groups.values()]


def table(engine: Engine, files: Sequence[File]) -> Table:
    """Files of one format as one table."""
    first = files[0]
    paths = f"[{', '.join(quoted(file.pattern) for file in files)}]"
    where = first.original or first.path
    if len(files) > 1:
        where = f"{where} and {len(files) - 1:,} more"
    if first.format == "json":
        return _json_table(first, paths, where)
    if first.format == "parquet":
        relation = f"read_parquet({paths}, union_by_name = true)"
    else:
        # DuckDB cannot do both; files with one header need no union.
        rejected = f"store_rejects = true, rejects_limit = {MAX_REJECTS}"
        is_union = len(files) > 1 and not first.lines
        relation = (
            f"read_csv({paths}, header = true, all_varchar = true, ignore_errors = true,"
            f" {'union_by_name = true' if is_union else rejected},"
            f" compression = '{first.compression}')"
        )
    return _of_columns(engine, relation, where, first.lines)


def _of_columns(engine: Engine, relation: str, where: str, lines: Sequence[str] = ()) -> Table:
    columns = _described(engine, f"SELECT * FROM {relation}")
    binary = [column for column, kind in columns.items() if kind == "BLOB"]
    if binary:  # as in a dump of a topic
        texts = ", ".join(f"try(decode({name(each)})) AS {name(each)}" for each in binary)
        relation = f"(SELECT * REPLACE ({texts}) FROM {relation})"
        columns.update(dict.fromkeys(binary, "VARCHAR"))
    return Table(relation, columns, False, where, lines=lines)


def rejects(engine: Engine) -> dict[str, int]:
    """The rows of CSV that DuckDB could not read and left out, by reason; `UNCOUNTED` if more."""
    if not engine.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"):
        return {}
    more = engine.rows(
        f"SELECT 1 FROM reject_errors GROUP BY scan_id, file_id"
        f" HAVING count(*) >= {MAX_REJECTS} LIMIT 1"
    )
    rows = engine.rows(
        "SELECT lower(error_type::VARCHAR), count(DISTINCT (file_path, line)) FROM reject_errors"
        " JOIN reject_scans USING (scan_id, file_id) GROUP BY 1 ORDER BY 1"
    )
    return {f"{reason} in CSV{UNCOUNTED if more else ''}": int(count) for reason, count in rows}


def _described(engine: Engine, query: str) -> dict[str, str]:
    """The columns and their types, also the fields of columns that are structs or maps."""
    columns = {str(row[0]): str(row[1]) for row in engine.rows(f"DESCRIBE {query}")}
    inside: list[str] = []
    for column, kind in columns.items():
        if "." not in column and not column.startswith("segment"):
            inside += _fields(engine, query, [column], kind)
    return dict.fromkeys(inside, INNER) | columns


def _fields(engine: Engine, query: str, steps: Sequence[str], kind: str) -> list[str]:
    """The paths of the fields of a struct or map."""
    column = name(steps[0]) + "".join(f"[{quoted(step)}]" for step in steps[1:])
    found: list[tuple[Any, ...]] = []
    if kind.startswith("STRUCT(") and not kind.endswith("]"):
        found = engine.rows(f"DESCRIBE SELECT x.* FROM (SELECT {column} AS x FROM ({query}))")
    elif kind.startswith("MAP(VARCHAR,") and not kind.endswith("]"):
        found = engine.rows(
            f"SELECT DISTINCT unnest(map_keys({column})) AS key, '' FROM ({query} LIMIT {SAMPLE})"
            f" ORDER BY key LIMIT {MAX_KEYS}"
        )
    paths = []
    for field, of_field, *_ in found:
        if is_step(str(field)):
            paths.append(".".join([*steps, str(field)]))
            if len(steps) < MAX_LEVELS - 1:
                paths += _fields(engine, query, [*steps, str(field)], str(of_field))
    return paths


def query_table(engine: Engine, sql: str) -> Table:
    """The rows of a query; statements before it, such as ATTACH, are run first.

    Raises:
        ConfigurationError: there is no statement.
        StreamduelError: DuckDB cannot run one.
    """
    statements = engine.statements(sql)
    if not statements:
        raise ConfigurationError("--sql must be a query (found none).")
    for statement in statements[:-1]:
        engine.run("attaching", statement)
    return _of_columns(engine, f"({statements[-1]})", "the query")


def _json_table(file: File, paths: str, where: str) -> Table:
    lenient = file.layout == "newline_delimited"
    whole = (
        f"read_json_objects({paths}, format = '{file.layout}', compression = '{file.compression}'"
        f"{', ignore_errors = true' if lenient else ''})"
    )
    return Table(_bounded(whole), {}, True, where, whole)


def _bounded(rows: str) -> str:
    """Rows of JSON, without those that are too large.

    Each of some twenty fields would be looked for in a long row, in as much memory each.
    """
    most = LimitSettings().max_record_bytes
    return f"(SELECT CASE WHEN strlen(json) <= {most} THEN json END AS json FROM {rows})"


def rows_as_json(table: Table) -> str:
    """What is after FROM, for rows of JSON in the column `json`."""
    if table.is_json:
        return table.relation
    return _bounded(f"(SELECT {_JSON} AS json FROM {table.relation})")


def with_keys(engine: Engine, rows: Table) -> Table:
    """The same table of JSON objects, with the names of their fields.

    The whole log is read for it: clicks may come after a million lists.
    """
    # In one scan; the fields are looked at one by one only in rows that have a `{` inside.
    keys = engine.rows(
        f"""
        SELECT key, coalesce(bool_or(CASE
            WHEN is_nested AND key <> '' AND NOT contains(key, '"') AND NOT contains(key, '\\')
            THEN json_type(json, '$."' || key || '"') = 'OBJECT' END), false)
        FROM (
            SELECT unnest(json_keys(json)) AS key, json,
                contains(substr(json::VARCHAR, 2), '{{') AS is_nested
            FROM {rows.relation} WHERE json_type(json) = 'OBJECT'
        ) GROUP BY key ORDER BY count(*) DESC, key LIMIT {MAX_KEYS}
        """
    )
    columns = {key: OUTER for key, _ in keys if is_step(key)}
    for key in [each for each, is_object in keys if is_object and not each.startswith("segment")]:
        path = quoted(path_of(key))
        objects = engine.rows(
            f"SELECT json_extract(json, {path})::VARCHAR FROM {rows.relation}"
            f" WHERE json_type(json, {path}) = 'OBJECT' LIMIT {SAMPLE}"
        )
        inside = {each for (text,) in objects for each in _paths(decoded(text) or {}, key)}
        columns.update(dict.fromkeys(sorted(inside, key=_depth)[:MAX_KEYS], INNER))
    return replace(rows, columns=columns)


def _depth(path: str) -> tuple[int, str]:
    """For sorting: outer fields first."""
    return path.count("."), path


def _paths(value: Mapping[str, Any], prefix: str, levels: int = MAX_LEVELS - 1) -> Iterator[str]:
    """The names of the fields of an object, and of the objects inside, with dots.

    >>> list(_paths({"left": "x", "user": {"id": 5}}, "event"))
    ['event.left', 'event.user', 'event.user.id']
    """
    for key, inner in value.items():
        if is_step(key):
            yield f"{prefix}.{key}"
            if isinstance(inner, dict) and levels > 1:
                yield from _paths(inner, f"{prefix}.{key}", levels - 1)


def sample(engine: Engine, table: Table) -> list[Row]:
    """The first rows, as far as they are objects."""
    value = "json" if table.is_json else _JSON
    rows = engine.rows(f"SELECT {value}::VARCHAR FROM {table.relation} LIMIT {SAMPLE}")
    return [row for (text,) in rows if text is not None and (row := decoded(text)) is not None]


def read_json(text: str | bytes) -> Any:
    """JSON; None if it is none, or nested too deeply.

    Tables and Python write NaN and Infinity, which only the slower `json` of Python reads.
    """
    for decode in (msgspec.json.decode, json.loads):
        with contextlib.suppress(ValueError, RecursionError):
            return decode(text)
    return None


def decoded(text: str | bytes) -> Row | None:
    """A row; None if it is no object of JSON.

    >>> decoded('{"a": NaN}'), decoded('{"a": 1,}')
    ({'a': nan}, None)
    """
    row = read_json(text)
    return row if isinstance(row, dict) else None
