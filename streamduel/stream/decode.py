"""Decoding: from the bytes of a record to an event, or to the verdict on it.

The fast path is one call of msgspec. The code that explains a mistake runs only for a refused
record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, get_args

import msgspec
import numpy as np

from streamduel.config import Config
from streamduel.connector import LogRecord
from streamduel.formats import Ignored, Translator
from streamduel.formats.base import MAX_ENTRIES
from streamduel.formats.reading import malformed, no_object, not_utf8, out_of_range, read_value
from streamduel.record_rules import misfit
from streamduel.records import InputEvent, Rejected

MAX_NESTING: Final = 200
"""JSON nested deeper is refused: far below the interpreter's recursion limit, so that the verdict
never depends on the depth of the call stack."""

REFUSED: Final = (msgspec.DecodeError, TypeError, UnicodeDecodeError, Rejected)
"""Exceptions of decoding; a TypeError is that of a value which is None."""

BULK_BYTES: Final = 2**22
"""Records that are decoded together: their events may take ten times as much memory."""

CHUNK: Final = 2**18
"""Bytes of a record whose brackets are counted at a time: a few arrays of them fit into a cache."""

PARTS_PER_RANK: Final = 20
"""Arrays and objects in a record of a foreign format, which is decoded whole: a document is an
object, and has a few."""

SLOW_NUMBER: Final = re.compile(rb"-(?<=[eE]-)(?:0*+[2-9]\d\d|(?<=[\d.]{20}[eE]-)\d\d)\d*+[\s,\]}]")
"""The end of a number that msgspec reads digit by digit, in up to 10 µs, as 1e-310: the only float
of a record is a chance, and another number ends the decoding. It begins with the sign because a
search for one byte is the fastest; an id such as a UUID does not end like this."""

SHOWN_BYTES: Final = 4096
"""A longer array or object is not decoded for the sentence about it: a million small ones would
take a second."""


class RecordDecoder:
    """Decodes records of at most `max_record_bytes`.

    Args:
        max_record_bytes: a larger record is refused.
        translate: translates the records of a foreign format; None for streamduel's own.
        max_ranks: bounds the arrays and objects of a record in a foreign format.

    >>> decode = RecordDecoder(max_record_bytes=1000)
    >>> decode(b'{"type":"duel","id":"1","experiment":"s","a":"x","b":"y","winner":"a"}')
    Duel(id='1', experiment='s', a='x', b='y', winner='a')
    >>> decode(b'{"type":"duel","id":"1","experiment":"s","a":"x","b":"y","winner":"c"}')
    Traceback (most recent call last):
    streamduel.records.Rejected: winner must be 'a', 'b', 'tie' or null (found 'c').
    """

    def __init__(
        self,
        max_record_bytes: int,
        translate: Translator | None = None,
        max_ranks: int = MAX_ENTRIES,
    ) -> None:
        self._max_ranks = max_ranks
        self._max_record_bytes = max_record_bytes
        self._translate = translate
        self._plain: Callable[[bytes], InputEvent] = msgspec.json.Decoder(InputEvent).decode
        # JSON of n bytes is nested at most n / 2 deep: shorter records need no closer look.
        self._plain_bytes = min(max_record_bytes, 2 * MAX_NESTING)

    @classmethod
    def of(cls, config: Config) -> Self:
        """The decoder of a service with this configuration."""
        limits, form = config.limits, config.log_format
        translate = None if form is None else form.translate
        return cls(limits.max_record_bytes, translate, limits.max_ranks)

    def leading(self, records: Sequence[LogRecord]) -> list[InputEvent | Exception]:
        """What the first records contain: all of them, or fewer if they are large.

        Args:
            records: at least one.

        Returns:
            For each record its event, or the exception that `verdict` explains.
        """
        plain, most = self._plain, self._plain_bytes
        values: list[Any] = [record.value for record in records]
        try:
            if max(map(len, values)) <= most:
                together = b"".join(values)
                if together.isascii() and not (b"[" in together and SLOW_NUMBER.search(together)):
                    return [plain(value) for value in values]
        except REFUSED:
            pass  # find out which
        events: list[InputEvent | Exception] = []
        size = 0
        for value in values:
            try:
                events.append(self(value))
                size += len(value)
            except REFUSED as error:
                error.__traceback__ = error.__context__ = None  # they would keep all these events
                events.append(error)
            if size > BULK_BYTES:
                break
        return events

    def __call__(self, value: bytes | Rejected | None) -> InputEvent:
        """The event in a record's value.

        Raises:
            Rejected: there is none; the reason is `too_large`, `invalid_json` or
                `invalid_record`.
        """
        try:
            text: Any = value  # None and a Rejected have no length: a TypeError
            if len(text) > self._plain_bytes:
                self._check_bounds(text)
            if b"[" in text and SLOW_NUMBER.search(text):  # many numbers need an array
                _check_numbers(text)
            if not text.isascii():
                text.decode()  # msgspec does not check the text of fields that it skips
            return self._plain(text)
        except REFUSED as error:
            raise self.verdict(value, error) from None

    def verdict(self, value: bytes | Rejected | None, error: Exception) -> Rejected:
        """The verdict on a value, from the exception that decoding it raised, one of `REFUSED`."""
        if isinstance(error, Rejected):
            return error
        if isinstance(value, Rejected):  # has no length either
            return value
        if value is None:
            return Rejected(
                "invalid_record", "the value is null (a tombstone); a record is a JSON object."
            )
        if isinstance(error, UnicodeDecodeError):
            return not_utf8(error)
        return _explain(value, error)

    def events(self, value: bytes | Rejected | None) -> list[InputEvent]:
        """The events in a record's value, in whatever format.

        Raises:
            Rejected: the record should contain an event, and does not.
            Ignored: the record, of a foreign click log, is not about rankers.
        """
        if self._translate is None or value is None or isinstance(value, Rejected):
            return [self(value)]
        self._check_bounds(value)
        parts, most = _brackets(value), PARTS_PER_RANK * self._max_ranks
        if parts > most:
            raise Unread(
                "invalid_record",
                f"the record has {parts} arrays and objects; limits.max_ranks allows {most}, "
                f"{PARTS_PER_RANK} for each of {self._max_ranks} ranks.",
            )
        return self._translate(value)

    def timestamp(self, record: LogRecord) -> int | None:
        """The timestamp of a record in Kafka, or the largest `ts` of its events; None if none."""
        if record.timestamp is not None:
            return record.timestamp
        try:
            times = [event.ts for event in self.events(record.value) if event.ts is not None]
        except (Rejected, Ignored):
            return None
        return max(times, default=None)

    def _check_bounds(self, value: bytes) -> None:
        size = len(value)
        if size > self._max_record_bytes:
            raise Unread(
                "too_large",
                f"the record has {size} bytes; limits.max_record_bytes allows "
                f"{self._max_record_bytes}.",
            )
        if _brackets(value) > MAX_NESTING:
            _check_nesting(value)


class Unread(Rejected):
    """The record was refused before it was decoded."""


class _Named(msgspec.Struct):
    experiment: str = ""


def named_experiment(value: bytes | Rejected | None) -> str:
    """The experiment that a refused record names, or ""; an `Unread` one may be too large."""
    if isinstance(value, Rejected):
        return ""
    try:
        return msgspec.json.decode(value or b"", type=_Named).experiment
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _brackets(value: bytes) -> int:
    return value.count(b"[") + value.count(b"{")


def _check_nesting(value: bytes) -> None:
    """Refuse JSON that is nested too deep: some 5 ms per MB, and no recursion."""
    if b"\\" in value:
        value = value.replace(b"\\\\", b"..").replace(b'\\"', b"..")
    codes = np.frombuffer(value, np.uint8)
    depth = deepest = 0
    within = False  # a string
    for start in range(0, len(codes), CHUNK):
        chunk = codes[start : start + CHUNK]
        inside = np.logical_xor.accumulate(chunk == ord('"')) ^ within
        within = bool(inside[-1])
        chunk = np.where(inside, 0, chunk | 0x20)  # [ and { differ in this bit, ] and } too
        steps = (chunk == ord("{")).view(np.int8) - (chunk == ord("}")).view(np.int8)
        depths = np.cumsum(steps, dtype=np.int32)
        deepest = max(deepest, depth + int(depths.max()))
        depth += int(depths[-1])
    if deepest > MAX_NESTING:
        if depth != 0:
            raise Unread("invalid_json", "the value is not JSON: its brackets do not match.")
        raise Unread(
            "invalid_record",
            f"the record is nested {deepest} levels deep; at most {MAX_NESTING} are allowed.",
        )


def _check_numbers(value: bytes) -> None:
    """Refuse a slow number that is not part of a string."""
    if b"\\" in value:
        value = value.replace(b"\\\\", b"").replace(b'\\"', b"")
    if SLOW_NUMBER.search(b'"'.join(value.split(b'"')[::2])):
        raise Unread(
            "invalid_record",
            "the record has a number with an exponent below -199, or one with 20 digits or more "
            "and an exponent below -9; write fewer digits, or 0.",
        )


class _Long:
    """A value that is too long to be decoded for a sentence."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return self._kind


def _explain(value: bytes, error: Exception) -> Rejected:
    """The verdict on text that msgspec refused with this error."""
    if not isinstance(error, msgspec.ValidationError):
        assert isinstance(error, msgspec.DecodeError)
        return malformed(value, error)
    try:
        if not value.lstrip().startswith(b"{"):
            return no_object(_value(msgspec.json.decode(value, type=msgspec.Raw)))
        fields = _RawFields(msgspec.json.decode(value, type=_Fields))
        return Rejected("invalid_record", misfit(fields, str(error)))
    except msgspec.ValidationError:  # JSON has no bound, but no count has 5000 digits
        return out_of_range()
    except msgspec.DecodeError as reason:
        return malformed(value, reason)


def _value(text: msgspec.Raw) -> Any:
    """The value of a field for a sentence; one that takes long to decode is only named."""
    kind = _kind(text)
    if kind == "a string" or len(text) <= SHOWN_BYTES:
        return read_value(text)
    if kind == "a number":
        raise msgspec.ValidationError
    return _Long(f"{kind} of {len(text)} bytes")


_KINDS: Final = {ord("{"): "an object", ord("["): "an array", ord('"'): "a string"}


def _kind(text: msgspec.Raw) -> str:
    return _KINDS.get(memoryview(text)[0], "a number")


_FIELDS: Final = ("type", *sorted({
    field for event in get_args(InputEvent) for field in event.__struct_fields__
}))  # fmt: skip
_Fields = msgspec.defstruct("_Fields", [(name, msgspec.Raw, msgspec.Raw()) for name in _FIELDS])
"""The fields of any record, each as its text; a missing one is empty."""


class _RawFields(Mapping[str, Any]):
    """The fields of a refused record, each decoded when the sentence asks for it."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        text: msgspec.Raw = getattr(self._fields, name, msgspec.Raw())
        if not len(text):
            raise KeyError(name)
        return _value(text)

    def __iter__(self) -> Iterator[str]:
        return (name for name in _FIELDS if len(getattr(self._fields, name)))

    def __len__(self) -> int:
        return sum(1 for _ in self)
