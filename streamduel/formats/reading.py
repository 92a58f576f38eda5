"""Reading records of another program: JSON, fields by their paths, and checked values.

A function raises Rejected if a record or a field does not have the form that it needs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import isinf
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from streamduel.errors import shown
from streamduel.record_rules import misfit
from streamduel.records import MAX_DOC, MAX_NAME, MAX_QUERY, MAX_TIME, Control, Rejected

MAX_DIGITS: Final = 16
"""Of a number written as text: `MAX_TIME` has so many, and longer ones are slow to read."""

_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = re.compile(rf"\d{{1,{MAX_DIGITS}}}", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise msgspec.ValidationError("Number out of range")
    return value


read_value: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(float_hook=_float).decode
"""Decodes any JSON. Python reads every float in about a microsecond; msgspec, which gives the same
value, reads most of them faster, but 1e-310 and 1e308 in ten."""


class Found(NamedTuple):
    """A field of a record: its path, and its value or None if missing, null or an empty string."""

    where: str
    value: Any

    def misfit(self, allowed: str) -> Rejected:
        """The rejection of a record with another value than is allowed."""
        found = shown(self.value, json=True)
        return Rejected("invalid_record", f"{self.where} must be {allowed} (found {found}).")

    def entries(self, allowed: str) -> list[Found]:
        """The entries of an array; another value is a `misfit`."""
        if not isinstance(self.value, list):
            raise self.misfit(allowed)
        return [Found(f"{self.where}[{rank}]", entry) for rank, entry in enumerate(self.value)]


def read_object(value: bytes) -> dict[str, Any]:
    """A record as a JSON object."""
    try:
        value.decode()  # a better error than msgspec's
        found = read_value(value)
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None
    except msgspec.ValidationError:  # such as a number of 5000 digits
        raise out_of_range() from None
    except msgspec.DecodeError as error:
        raise malformed(value, error) from None
    except RecursionError:  # deeper than the stream allows
        raise Rejected("invalid_record", "the record is nested too deep.") from None
    if not isinstance(found, dict):
        raise no_object(found)
    return found


def no_object(found: object) -> Rejected:
    """The rejection of JSON that is not an object."""
    sentence = f"the value is {shown(found, json=True)}; a record is a JSON object."
    return Rejected("invalid_record", sentence)


def out_of_range() -> Rejected:
    """The rejection of a record with a number that cannot be read."""
    return Rejected("invalid_record", "the record has a number that is out of range.")


def not_utf8(error: UnicodeDecodeError) -> Rejected:
    """The rejection of a value that is not text."""
    sentence = f"the value is not UTF-8: {error.reason} (byte {error.start})."
    return Rejected("invalid_json", sentence)


def malformed(value: bytes, error: msgspec.DecodeError) -> Rejected:
    """The rejection of a value that is not JSON."""
    detail = str(error).removeprefix("JSON is malformed: ")
    if detail == "Input data was truncated":
        detail = _truncation(value)
    return Rejected("invalid_json", f"the value is not JSON: {detail}.")


def _truncation(value: bytes) -> str:
    """The reason for which a value is truncated."""
    if not value.strip():
        return "it is empty"
    if _HALF_PAIR.search(value, len(value) - 12):  # half a pair at the end is read as truncation
        return "it has half a surrogate pair"
    return "it ends too early"


def control(value: bytes, record: dict[str, Any]) -> Control:
    """One of streamduel's own control records, which every format allows.

    Args:
        value: the text of the record.
        record: what it contains.
    """
    try:
        return _control(value)  # from the text, because `settings` are kept as text
    except msgspec.ValidationError as error:
        raise Rejected("invalid_record", misfit(record, str(error))) from None


_control: Final = msgspec.json.Decoder(Control).decode


def look_up(record: dict[str, Any], paths: Sequence[str]) -> Found:
    """The first of these fields that the record has: names, nested ones separated by dots.

    >>> look_up({"position": {"ordinal": 3}}, ["position.ordinal.index", "position.ordinal"])
    Found(where='position.ordinal', value=3)
    """
    for path in paths:
        first, *rest = path.split(".")
        value = record.get(first)
        for name in rest:
            if not isinstance(value, dict):
                value = None
                break
            value = value.get(name)
        if value is not None and value != "":
            return Found(path, value)
    return Found(paths[0] if paths else "", None)


def are_texts(values: Sequence[Any], most: int) -> bool:
    """Whether all values are strings of 1 to `most` characters.

    Most lists of ids are: reading each entry as a `Found` takes ten times as long.

    >>> are_texts(["d1", "d2"], 2), are_texts(["d1", 2], 2), are_texts(["d1", ""], 2)
    (True, False, False)
    """
    return (
        {*map(type, values)} == {str} and len(min(values)) > 0 and len(max(values, key=len)) <= most
    )


def name(found: Found, allowed: str = f"a string of 1 to {MAX_NAME} characters") -> str:
    """An arm's or an experiment's name."""
    if not isinstance(found.value, str) or not 1 <= len(found.value) <= MAX_NAME:
        raise found.misfit(allowed)
    return found.value


def identifier(found: Found) -> str:
    """An id of any length; ids of other systems may be numbers."""
    if isinstance(found.value, str) or _is_integer(found.value):
        return short(str(found.value))
    raise found.misfit("a string or an integer")


def document(found: Found) -> str:
    """A document's id."""
    text = str(found.value) if _is_integer(found.value) else found.value
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_DOC:
        raise found.misfit(f"a document's id, a string of 1 to {MAX_DOC} characters or an integer")
    return text


def client(found: Found) -> str | None:
    """The user or session of a record; None if there is none, or none that could be one."""
    if isinstance(found.value, str) or _is_integer(found.value):
        return short(str(found.value))
    return None


class Origin(TypedDict):
    """Where a record comes from, as fields of an event.

    Attributes:
        client: the user or session.
        query: the beginning of what the user searched for; None if that is unknown, or no text.
    """

    client: str | None
    query: str | None


def origin(record: dict[str, Any], users: Sequence[str], queries: Sequence[str]) -> Origin:
    """Where a record comes from, by the paths of the fields."""
    query = look_up(record, queries).value
    return {
        "client": client(look_up(record, users)),
        "query": query[:MAX_QUERY] if isinstance(query, str) else None,
    }


def integer(found: Found, least: int) -> int:
    """An integer, which may be written as a string or as a float."""
    value = found.value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_integer(value) or not least <= value <= MAX_TIME:
        raise found.misfit(f"an integer from {least}")
    return int(value)


def milliseconds(found: Found) -> int | None:
    """A time, in milliseconds since the Unix epoch; None if there is none.

    >>> milliseconds(Found("timestamp", "2025-01-24T08:31:30.699+0100"))
    1737703890699
    >>> milliseconds(Found("timestamp", "1737703890699"))
    1737703890699
    """
    value = found.value
    if value is None:
        return None
    time = -1
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        time = int(value)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
        if moment is not None:
            zoned = moment.replace(tzinfo=moment.tzinfo or UTC)  # the usual time zone of servers
            time = (zoned - _EPOCH) // timedelta(milliseconds=1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        time = int(value)
    if not 0 <= time <= MAX_TIME:
        raise found.misfit("a time since 1970, in ISO 8601 or in milliseconds")
    return time


def compose(*parts: Any) -> str:
    """An id composed of a record's fields, for records without an id of their own.

    The fields are encoded as a JSON array, so that different ones give different ids.

    >>> compose("click", "q-1", None, 3)
    '["click","q-1",null,3]'
    """
    return short(msgspec.json.encode(parts).decode())


def short(text: str) -> str:
    """An id, or its hash if it is too long."""
    if len(text) <= MAX_NAME:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
