"""Exports of other programs (UBI, Solr), translated by the same code as for the service.

Their records become streamduel's own in a temporary file, which is then read like any log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from streamduel.analysis.engine import Engine, name, quoted
from streamduel.analysis.fields import Chosen, own_columns
from streamduel.analysis.inputs import File
from streamduel.analysis.kinds import Source
from streamduel.analysis.tables import INNER, SAMPLE, Table, decoded, table
from streamduel.errors import ConfigurationError
from streamduel.formats import FORMATS, FormatSettings, Ignored, UbiSettings
from streamduel.formats.reading import client, look_up
from streamduel.records import MAX_NAME, InputEvent, Rejected

UNNAMED: Final = "?"
"""In the temporary file: the experiment of records that name none."""

AT_ONCE: Final = 10_000

FEW: Final = 0.01
"""A smaller share of clicks with the ordinal 0 is a mistake in a log that begins with 1."""

SEGMENTS: Final = ("query_attributes.segment", "segment")
"""Where a service may log the segment of a query."""

LISTS: Final = ("query_response_hit_ids", "teams")
"""Fields whose values are lists; OpenSearch Dashboards separates them by commas in CSV."""

UBI_NAMES: Final = {"impression": "query", "rank": "ordinal"}
"""Fields that `UbiFields` names differently."""


def translate(
    engine: Engine, sources: Sequence[Source], chosen: Chosen, weighted: Iterable[str]
) -> tuple[Source, Counter[str]]:
    """Translate all exports of one program.

    Args:
        engine: for reading, and with the folder of the temporary file.
        sources: its tables: queries and events may be apart.
        chosen: paths that the user gave.
        weighted: actions that count as clicks, too.

    Returns:
        streamduel's own records, and the number of ignored rows by reason.
    """
    kind = sources[0].kind
    more = {action: action for action in weighted}
    settings: Any  # each format has `clicks`
    if kind == "ubi":
        settings = _ubi(engine, sources, chosen, more)
    else:
        settings = FORMATS[kind]()
        settings = settings.model_copy(update={"clicks": settings.clicks | more})
    translator = _Translator(settings, chosen)
    path = engine.folder / f"translated-{kind}.jsonl"
    with path.open("wb") as file:
        for source in sources:
            for done, lines in _lines(engine, source.table):
                file.writelines(translator.translate(line.encode()) for line in lines)
                engine.done(f"translating {source.table.where}", done)
    own = table(engine, [File(str(path), "json", "none")])
    columns = own_columns(Chosen([]))
    return Source(own, "own", columns, [], UNNAMED, not settings.tells_ranks), translator.ignored


def _lines(engine: Engine, rows: Table) -> Iterator[tuple[float, list[str]]]:
    """All rows as JSON, some at a time, with the share that is done."""
    total = max(1, engine.rows(f"SELECT count(*) FROM {rows.relation}")[0][0])
    done = 0
    for batch in engine.batches(f"SELECT {_as_json(rows)} FROM {rows.relation} AS t", AT_ONCE):
        done += len(batch)
        lines = [text for (text,) in batch if text is not None]
        yield done / total, lines if rows.is_json else [_finite(line) for line in lines]


def _finite(line: str) -> str:
    """A row of a table without NaN and Infinity, which are not JSON."""
    if "NaN" not in line and "Infinity" not in line:
        return line
    return msgspec.json.encode(decoded(line)).decode()


def _as_json(rows: Table) -> str:
    """A row as JSON; text in a column of a table may itself be JSON.

    Names with dots, as OpenSearch Dashboards writes them to CSV, are those of nested objects.
    """
    if rows.is_json:
        return "json::VARCHAR"
    values: dict[str, Any] = {}
    for column, kind in rows.columns.items():
        if kind == INNER:
            continue  # within its column
        *outer, last = column.split(".")
        if any(".".join(outer[: n + 1]) in rows.columns for n in range(len(outer))):
            outer, last = [], column
        inside = values
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[last] = _json_of(last, kind, name(column))
    return f"{_object(values)}::VARCHAR"


def _object(values: Mapping[str, Any]) -> str:
    """An object of JSON, in SQL."""
    parts = (
        f"{quoted(key)}, {_object(value) if isinstance(value, dict) else value}"
        for key, value in values.items()
    )
    return f"json_object({', '.join(parts)})"


def _json_of(field: str, kind: str, value: str) -> str:
    """The value of a column as JSON, in SQL."""
    if kind.startswith("TIMESTAMP"):
        return f"to_json(epoch_ms({value}::TIMESTAMPTZ))"
    if kind != "VARCHAR":
        return f"to_json({value})"
    text = f"to_json({value})"
    if field in LISTS:
        text = f"to_json(string_split_regex(nullif({value}, ''), '\\s*,\\s*'))"
    elif field == "timestamp":
        text = f"coalesce(to_json(milliseconds({value}, NULL)), {text})"
    return (
        f"CASE WHEN regexp_matches({value}, '^\\s*[\\[{{]') AND json_valid({value})"
        f" THEN {value}::JSON ELSE {text} END"
    )


class _Translator:
    """Translates lines, those that name no experiment too.

    Attributes:
        ignored: rows that say nothing about a duel, by reason.
    """

    def __init__(self, settings: FormatSettings, chosen: Chosen) -> None:
        self._named = settings.translate
        fields = getattr(settings, "fields", None)
        paths = [] if fields is None else fields.experiment
        self._names = [path.rsplit(".", 1)[-1].encode() for path in paths]
        self._unnamed = settings.model_copy(update={"experiment": UNNAMED}).translate
        self._segments, self._client = chosen.segments, chosen.columns.get("client")
        self._encode = msgspec.json.Encoder().encode
        self.ignored: Counter[str] = Counter()

    def translate(self, line: bytes) -> bytes:
        """The lines of a row's events; for a row that cannot be used, one with the reason."""
        try:
            events = self._events(line)
        except Ignored as verdict:
            self.ignored[verdict.reason] += 1
            return b""
        except Rejected as verdict:
            unusable = {"type": "unusable", "rejected": verdict.sentence}
            return self._encode(unusable) + b"\n"
        if self._segments or self._client or b"segment" in line:
            events = [self._with_origin(event, line) for event in events]
        return b"".join(self._encode(event) + b"\n" for event in events)

    def _events(self, line: bytes) -> list[InputEvent]:
        if not any(name in line for name in self._names):  # most logs name none: half the work
            return self._unnamed(line)
        try:
            return self._named(line)
        except Ignored as verdict:
            if verdict.reason != "no experiment":
                raise
            return self._unnamed(line)

    def _with_origin(self, event: InputEvent, line: bytes) -> InputEvent:
        """The event with its segment and client."""
        record = _inner(decoded(line) or {})
        segment = self._segment(record)
        if segment:
            event = msgspec.structs.replace(event, segment=segment)
        if self._client:
            named = client(look_up(record, [self._client]))
            event = msgspec.structs.replace(event, client=named or event.client)
        return event

    def _segment(self, record: dict[str, Any]) -> str | Mapping[str, str] | None:
        if not self._segments:
            found = look_up(record, SEGMENTS)
            return found.value if isinstance(found.value, str | dict) else None
        values = {
            path.rsplit(".", 1)[-1]: str(value)[:MAX_NAME]
            for path in self._segments
            if (value := look_up(record, [path]).value) is not None
        }
        return values or None


def _ubi(
    engine: Engine, sources: Sequence[Source], chosen: Chosen, more: dict[str, str]
) -> UbiSettings:
    """The settings for UBI: where the sides are, more clicks, and the paths that the user gave."""
    fields = {
        UBI_NAMES.get(field, field): path
        for field, path in chosen.columns.items()
        if field not in {"client", "ts", "type"}
    }
    try:
        settings = UbiSettings.model_validate({"fields": fields})
    except ValueError as error:
        raise ConfigurationError(
            f"--map must name fields of UBI: {', '.join(UbiSettings().fields.model_dump())} (found "
            f"{', '.join(fields)})."
        ) from error
    settings = settings.model_copy(update={"clicks": settings.clicks | more})
    rows = [row for source in sources for row in _events(engine, source, '"action_name"')]
    queries = [row for source in sources for row in source.sample]
    if any(look_up(_inner(row), settings.fields.teams).value is not None for row in queries):
        return settings.model_copy(update=_first_ordinal(engine, sources, settings))
    labels = [look_up(_inner(row), settings.fields.team) for row in rows]
    known = sorted({found.value for found in labels if isinstance(found.value, str)})
    if not known:
        return settings
    changes: dict[str, Any] = {"sides": "events"}
    if len(known) == 2:
        changes["pair"] = known
    return settings.model_copy(update=changes)


def _first_ordinal(
    engine: Engine, sources: Sequence[Source], settings: UbiSettings
) -> dict[str, Any]:
    """0 as the first ordinal if clicks have it: it is 1 in UBI, but some services begin with 0.

    The ordinals of clicks that name their documents do not count.
    """
    actions = "|".join(map(re.escape, settings.clicks))
    clicks = [
        _inner(row)
        for source in sources
        for row in _events(engine, source, f'"action_name"\\s*:\\s*"({actions})"')
    ]
    ordinals = [
        look_up(row, settings.fields.ordinal).value
        for row in clicks if look_up(row, settings.fields.doc).value is None
    ]  # fmt: skip
    zeros = sum(str(ordinal) in {"0", "0.0"} for ordinal in ordinals)
    if not zeros or zeros < FEW * len(ordinals):
        return {}
    sentence = f"{zeros:,} of {len(ordinals):,} clicks have the ordinal 0: it is the first rank."
    engine.rows("INSERT INTO readings VALUES ('ranks', 'fine', ?)", [sentence])
    return {"first_ordinal": 0}


def _events(engine: Engine, source: Source, pattern: str) -> list[dict[str, Any]]:
    """Some rows that match a regular expression; events may all be after the queries."""
    text = _as_json(source.table)
    rows = engine.rows(
        f"SELECT json FROM (SELECT {text} AS json FROM {source.table.relation} AS t)"
        f" WHERE regexp_matches(json, {quoted(pattern)}) LIMIT {SAMPLE}"
    )
    return [row for (text,) in rows if (row := decoded(text)) is not None]


def _inner(row: dict[str, Any]) -> dict[str, Any]:
    return row["_source"] if isinstance(row.get("_source"), dict) else row
