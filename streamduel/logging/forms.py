"""The two forms of a line: text, and JSON."""

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

Form = Literal["text", "json"]
"""What lines look like."""
Chosen = Literal["text", "json", "auto"]
"""What may be asked for; `auto` is text on a terminal and JSON elsewhere."""

FIRST: Final = ("timestamp", "level", "event", "logger")
"""The keys that every line has, in this order; those of its event come after them."""

MOST_BYTES: Final = 4000
"""Of one value, as it is written: a letter may take several. Most lines have one long value at
most, a traceback or the text of an error, or a list of all partitions."""

MOST_LINE_BYTES: Final = 15_000
"""Of all values of a line together. Container engines cut a line into pieces at 16 KiB, and a piece
is no JSON."""

LEAST_BYTES: Final = 100
"""What is left of a value at least, however many a line has: a hundred of them fit, and only a
library could have more."""

OWN: Final = "streamduel"
"""Our packages' names begin with it, the connectors' too; all other loggers are libraries'."""


def chosen(wanted: Chosen, stream: TextIO) -> Form:
    """The form that is meant.

    Args:
        wanted: as it was asked for.
        stream: where the lines go.
    """
    if wanted == "auto":
        return "text" if stream.isatty() else "json"
    return wanted


def beginning(form: Form) -> Sequence[Processor]:
    """What every line is given first: when, how grave, and who says so."""
    time = (
        TimeStamper(fmt="iso", utc=True)
        if form == "json"
        else TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False)
    )
    return (time, add_log_level, add_logger_name)


def ending(form: Form, stream: TextIO) -> Sequence[Processor]:
    """What makes text of a line's keys at last."""
    if form == "json":
        plain = codecs.lookup(stream.encoding or "utf-8").name != "utf-8"
        return (_bounded, _ordered, JSONRenderer(ensure_ascii=plain))
    colours = stream.isatty() and not os.environ.get("NO_COLOR")
    return (_bounded, _ordered, _without_own_name, _console(colours))


def _bounded(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    most = MOST_BYTES
    if _bytes(line) <= most:  # nearly always
        return line
    bounded = {key: _shortened(value, most) for key, value in line.items()}
    while _bytes(bounded) > MOST_LINE_BYTES and most > LEAST_BYTES:
        most //= 2
        bounded = {key: _shortened(value, most) for key, value in line.items()}
    return bounded


def _shortened(value: Any, most: int) -> Any:
    """The value in so many bytes, and a few that say what is left out."""
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
    """The text's beginning and three times as much of its end: of a traceback it says most."""
    head = _fitting(text, most // 4)
    tail = _fitting(text[::-1], 3 * most // 4)[::-1]
    left_out = len(text) - len(head) - len(tail)
    return f"{head} … {left_out} characters left out … {tail}"


def _fitting(text: str, most: int) -> str:
    """The beginning of a text, in so many bytes."""
    for at, letter in enumerate(text):
        most -= _bytes(letter) - len('""')
        if most < 0:
            return text[:at]
    return text


def _bytes(value: Any) -> int:
    """How many it takes in a line of JSON; of the text form, about as many."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return len(text.encode("utf-8", "backslashreplace"))


def _ordered(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    first = {key: line.pop(key) for key in FIRST if key in line}
    return {**first, **line}


def _without_own_name(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """On a terminal our events speak for themselves; what a library says needs its name."""
    if line["logger"].startswith(OWN):
        del line["logger"]
    return line


def _console(colours: bool) -> ConsoleRenderer:
    """One line of text, as structlog's own renderer has it, for values of any kind."""
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
    """The text without line breaks, nor anything else that would move a terminal's cursor."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in str(value)
    )


def _shown(value: object) -> str:
    """A value after its key: in quotation marks where it would not be plain where it ends."""
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, str) and (not text or set(text) & set(" =\"'") or not text.isprintable()):
        text = json.dumps(text, ensure_ascii=False)
    return _one_line(text)
