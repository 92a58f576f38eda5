"""The two forms of a line: text, and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
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

MOST_CHARACTERS: Final = 4000
"""Of one value. Container engines cut a line into pieces at 16 KiB, and a piece is no JSON; a line
has one long value at most, a traceback or the text of an error."""

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
        return (_bounded, _ordered, JSONRenderer())
    colours = stream.isatty() and not os.environ.get("NO_COLOR")
    return (_bounded, _ordered, _without_own_name, _console(colours))


def _bounded(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    return {key: _shortened(value) for key, value in line.items()}


def _shortened(value: Any) -> Any:
    """The value; the middle of an overlong text is left out, for a traceback's end says most."""
    if not isinstance(value, str) or len(value) <= MOST_CHARACTERS:
        return value
    quarter = MOST_CHARACTERS // 4
    left_out = len(value) - 4 * quarter
    return f"{value[:quarter]} … {left_out} characters left out … {value[-3 * quarter :]}"


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
