"""Decoding of one record into an event, or into one sentence about why it is invalid.

The fast path is one call of msgspec; sentences are composed for invalid records alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from streamduel.errors import shown
from streamduel.formats import Translator
from streamduel.formats.reading import malformed
from streamduel.record_rules import misfit
from streamduel.records import InputEvent, Rejected

MAX_NESTING: Final = 200
"""JSON nested deeper is refused: far below the interpreter's recursion limit wherever the fold
is called from, so that the verdict on a record never depends on the depth of the call stack."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class RecordDecoder:
    """Decodes records of at most `max_record_bytes`.

    For ASCII of at most `plain_bytes` bytes, `plain` gives the same event sooner; where it
    raises, the decoder itself says why.

    Args:
        max_record_bytes: a larger record is refused.
        translate: of a log that is not made of streamduel's own records.

    Attributes:
        plain: msgspec's own decoding.
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
        """The event that a record's value holds.

        Raises:
            Rejected: it holds none; the reason is `too_large`, `invalid_json` or
                `invalid_record`.
        """
        if value is None:
            raise Rejected(
                "invalid_record", "the value is null (a tombstone); a record is a JSON object."
            )
        try:
            if len(value) > self.plain_bytes:
                self._check_bounds(value)
            if not value.isascii():
                value.decode()  # msgspec does not look at the text of fields that it skips
            return self.plain(value)
        except msgspec.DecodeError as error:
            raise _explain(value, error) from None
        except UnicodeDecodeError as error:
            raise Rejected(
                "invalid_json", f"the value is not UTF-8: {error.reason} (byte {error.start})."
            ) from None

    def events(self, value: bytes | None) -> list[InputEvent]:
        """The events that a record's value holds, of a log in whatever format.

        Raises:
            Rejected: it holds none, and should.
            Ignored: it is of no concern.
        """
        if self._translate is None or value is None:
            return [self(value)]
        self._check_bounds(value)
        return self._translate(value)

    def named_experiment(self, value: bytes | None) -> str:
        """The experiment that the value of a refused record names all the same, or ""."""
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
    """Refuse JSON nested too deep, without recursion."""
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


def _explain(value: bytes, error: msgspec.DecodeError) -> Rejected:
    """The reason and the sentence for a value that msgspec refused."""
    try:
        found = msgspec.json.decode(value)
    except msgspec.ValidationError:  # JSON has no bound, but a number of 5000 digits is no count
        return Rejected("invalid_record", "the record has a number that is out of range.")
    except msgspec.DecodeError as reason:
        return malformed(value, reason)
    if not isinstance(found, dict):
        return Rejected(
            "invalid_record", f"the value is {shown(found, json=True)}; a record is a JSON object."
        )
    return Rejected("invalid_record", misfit(found, str(error)))
