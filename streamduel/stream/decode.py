"""Decoding: from the bytes of a record to an event, or to the verdict on it.

The fast path is one call of msgspec. What explains a mistake runs only for a refused record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from streamduel.errors import shown
from streamduel.formats import Translator
from streamduel.formats.reading import malformed
from streamduel.record_rules import misfit
from streamduel.records import InputEvent, Rejected

MAX_NESTING: Final = 200
"""JSON nested deeper is refused: far below the interpreter's recursion limit, so that the verdict
never depends on the depth of the call stack."""

REFUSED: Final = (msgspec.DecodeError, TypeError, UnicodeDecodeError, Rejected)
"""Exceptions of decoding; a TypeError is that of a value which is None."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class RecordDecoder:
    """Decodes records of at most `max_record_bytes`.

    For ASCII of at most `plain_bytes` bytes, `plain` returns the same event faster; when it raises,
    `verdict` explains the exception.

    Args:
        max_record_bytes: a larger record is refused.
        translate: translates the records of a foreign format; None for streamduel's own.

    Attributes:
        plain: msgspec's decoder.
        plain_bytes: up to this length a record cannot break any bound.

    >>> decode = RecordDecoder(max_record_bytes=1000)
    >>> decode(b'{"type":"duel","id":"1","experiment":"s","a":"x","b":"y","winner":"a"}')
    Duel(id='1', experiment='s', a='x', b='y', winner='a', ts=None)
    >>> decode(b'{"type":"duel","id":"1","experiment":"s","a":"x","b":"y","winner":"c"}')
    Traceback (most recent call last):
    streamduel.records.Rejected: winner must be 'a', 'b', 'tie' or null (found 'c').
    """

    def __init__(self, max_record_bytes: int, translate: Translator | None = None) -> None:
        self._max_record_bytes = max_record_bytes
        self._translate = translate
        self.plain: Callable[[bytes], InputEvent] = msgspec.json.Decoder(InputEvent).decode
        # JSON of n bytes is nested at most n / 2 deep: shorter records need no closer look.
        self.plain_bytes = min(max_record_bytes, 2 * MAX_NESTING)

    def __call__(self, value: bytes | None) -> InputEvent:
        """The event in a record's value.

        Raises:
            Rejected: there is none; the reason is `too_large`, `invalid_json` or
                `invalid_record`.
        """
        try:
            text: Any = value  # None has no length: a TypeError
            if len(text) > self.plain_bytes:
                self._check_bounds(text)
            if not text.isascii():
                text.decode()  # msgspec does not check the text of fields that it skips
            return self.plain(text)
        except REFUSED as error:
            raise self.verdict(value, error) from None

    def verdict(self, value: bytes | None, error: Exception) -> Rejected:
        """The verdict on a value, from the exception that decoding it raised, one of `REFUSED`."""
        if isinstance(error, Rejected):
            return error
        if value is None:
            return Rejected(
                "invalid_record", "the value is null (a tombstone); a record is a JSON object."
            )
        if isinstance(error, UnicodeDecodeError):
            return Rejected(
                "invalid_json", f"the value is not UTF-8: {error.reason} (byte {error.start})."
            )
        return _explain(value, error)

    def events(self, value: bytes | None) -> list[InputEvent]:
        """The events in a record's value, in whatever format.

        Raises:
            Rejected: there is none, and there should be.
            Ignored: the record, of a foreign click log, is not about rankers.
        """
        if self._translate is None or value is None:
            return [self(value)]
        self._check_bounds(value)
        return self._translate(value)

    def named_experiment(self, value: bytes | None) -> str:
        """The experiment named in the value of a refused record, or ""."""
        try:
            self._check_bounds(value or b"")
            return msgspec.json.decode(value or b"", type=_Named).experiment
        except (Rejected, msgspec.DecodeError, UnicodeDecodeError):
            return ""

    def _check_bounds(self, value: bytes) -> None:
        size = len(value)
        if size > self._max_record_bytes:
            raise Rejected(
                "too_large",
                f"the record has {size} bytes; limits.max_record_bytes allows "
                f"{self._max_record_bytes}.",
            )
        if value.count(b"[") + value.count(b"{") > MAX_NESTING:
            _check_nesting(value)


class _Named(msgspec.Struct):
    experiment: str = ""


def _check_nesting(value: bytes) -> None:
    """Refuse JSON that is nested too deep, without recursion."""
    depth = deepest = 0
    for match in _BRACKETS.finditer(value):
        token = match[0]
        if token in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in b"]}":
            depth -= 1
    if deepest > MAX_NESTING:
        if depth != 0:
            raise Rejected("invalid_json", "the value is not JSON: its brackets do not match.")
        raise Rejected(
            "invalid_record",
            f"the record is nested {deepest} levels deep; at most {MAX_NESTING} are allowed.",
        )


def _explain(value: bytes, error: Exception) -> Rejected:
    """The verdict on text that msgspec refused with this error."""
    try:
        found = msgspec.json.decode(value)
    except msgspec.ValidationError:  # JSON has no bound, but no count has 5000 digits
        return Rejected("invalid_record", "the record has a number that is out of range.")
    except msgspec.DecodeError as reason:
        return malformed(value, reason)
    if not isinstance(found, dict):
        return Rejected(
            "invalid_record", f"the value is {shown(found, json=True)}; a record is a JSON object."
        )
    return Rejected("invalid_record", misfit(found, str(error)))
