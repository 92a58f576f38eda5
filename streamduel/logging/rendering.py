"""The two formats of a line: text and JSON."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TextIO

from structlog.dev import (
    Column,
    ConsoleRenderer,
    KeyValueColumnFormatter,
    LogLevelColumnFormatter,
    plain_traceback,
)
from structlog.processors import JSONRenderer, TimeStamper
from structlog.stdlib import add_log_level, add_logger_name
from structlog.typing import EventDict, Processor, WrappedLogger

from streamduel.errors import escaped

LogFormat = Literal["text", "json"]
FormatOption = Literal["text", "json", "auto"]
"""`auto` is text on a terminal and JSON elsewhere."""

FIRST: Final = ("timestamp", "level", "event", "logger")
"""The keys of every line, in this order; those of its event follow."""

MAX_BYTES: Final = 4000
"""Of one value, encoded. Most lines have at most one long value: a traceback, an error message or a
list of partitions."""

MAX_LINE_BYTES: Final = 15_000
"""Of all values of a line. Container engines split a line at 16 KiB, and its parts are not JSON."""

MIN_BYTES: Final = 100
"""The shortest length to which a value is cut: a hundred such values fit, and only a library could
have more."""

OWN: Final = "streamduel"
"""Prefix of our packages' names, connectors included; all other loggers are libraries'."""


def resolve_format(option: FormatOption, stream: TextIO) -> LogFormat:
    """The format to use.

    Args:
        option: as given by the user.
        stream: where the lines go.
    """
    if option == "auto":
        return "text" if stream.isatty() else "json"
    return option


def first_processors(form: LogFormat) -> Sequence[Processor]:
    """Add time, level and logger to a line."""
    time = (
        TimeStamper(fmt="iso", utc=True)
        if form == "json"
        else TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False)
    )
    return (time, add_log_level, add_logger_name)


def last_processors(form: LogFormat, stream: TextIO) -> Sequence[Processor]:
    """Render the line."""
    if form == "json":
        plain = codecs.lookup(stream.encoding or "utf-8").name != "utf-8"
        return (_bounded, _ordered, JSONRenderer(ensure_ascii=plain))
    colours = stream.isatty() and not os.environ.get("NO_COLOR")
    return (_bounded, _ordered, _without_own_name, _console(colours))


def _bounded(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    most = MAX_BYTES
    if _bytes(line) <= most:  # the usual case
        return line
    bounded = {key: _shortened(value, most) for key, value in line.items()}
    while _bytes(bounded) > MAX_LINE_BYTES and most > MIN_BYTES:
        most //= 2
        bounded = {key: _shortened(value, most) for key, value in line.items()}
    return bounded


def _shortened(value: Any, most: int) -> Any:
    """The value in at most that many bytes, plus a note of what is left out."""
    if _bytes(value) <= most:
        return value
    if isinstance(value, Mapping):
        kept = dict(_first(value.items(), most))
        return {**kept, "…": f"{len(value) - len(kept)} more"}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        first = list(_first(value, most))
        return [*first, f"… {len(value) - len(first)} more"]
    return _without_middle(str(value), most)


def _first(values: Iterable[Any], most: int) -> Iterator[Any]:
    """As many of the values as fit."""
    for value in values:
        most -= _bytes(value) + len(", ")
        if most < 0:
            return
        yield value


def _without_middle(text: str, most: int) -> str:
    """The text's beginning and three times as much of its end, as for a traceback."""
    head = _fitting(text, most // 4)
    tail = _fitting(text[::-1], 3 * most // 4)[::-1]
    left_out = len(text) - len(head) - len(tail)
    return f"{head} … {left_out} characters left out … {tail}"


def _fitting(text: str, most: int) -> str:
    """The beginning of a text in at most that many bytes."""
    for at, character in enumerate(text):
        most -= _bytes(character) - len('""')
        if most < 0:
            return text[:at]
    return text


def _bytes(value: Any) -> int:
    """The bytes of a value in JSON; in text about as many."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return len(text.encode("utf-8", "backslashreplace"))


def _ordered(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    first = {key: line.pop(key) for key in FIRST if key in line}
    return {**first, **line}


def _without_own_name(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """In text only libraries' lines have a logger name."""
    if line["logger"].startswith(OWN):
        del line["logger"]
    return line


def _console(colours: bool) -> ConsoleRenderer:
    """Structlog's own renderer, with each value on one line."""
    styles = ConsoleRenderer.get_default_column_styles(colours)
    levels = ConsoleRenderer.get_default_level_styles(colours)
    plain = partial(
        KeyValueColumnFormatter, key_style=None, reset_style=styles.reset, value_repr=_one_line
    )
    return ConsoleRenderer(
        columns=[
            Column("", KeyValueColumnFormatter(
                styles.kv_key, styles.kv_value, styles.reset, value_repr=_shown
            )),
            Column("timestamp", plain(value_style=styles.timestamp)),
            Column("level", LogLevelColumnFormatter(levels, styles.reset)),
            Column("logger", plain(value_style=styles.logger_name, postfix=":")),
            Column("event", plain(value_style=styles.bright)),
        ],
        sort_keys=False,
        exception_formatter=plain_traceback,
    )  # fmt: skip


def _one_line(value: object) -> str:
    """The text with line breaks and control characters escaped."""
    return escaped(str(value))


def _shown(value: object) -> str:
    """A value after its key, quoted where its end would be unclear."""
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, str) and (not text or set(text) & set(" =\"'") or not text.isprintable()):
        text = json.dumps(text, ensure_ascii=False)
    return _one_line(text)
