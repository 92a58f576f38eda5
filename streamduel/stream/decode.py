"""From the bytes of one record to an event, or to one sentence that says why not.

The fast path is one call of msgspec. Everything that explains a mistake runs only for a record
that is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, get_args

import msgspec

from streamduel.errors import nearest
from streamduel.formats import Translator
from streamduel.formats.reading import malformed
from streamduel.records import Action, InputEvent, Rejected

MAX_NESTING: Final = 200
"""JSON nested deeper is refused: far below the interpreter's recursion limit wherever the fold
is called from, so that the verdict on a record never depends on the depth of the call stack."""

SHOWN: Final = 80
"""Characters of a found value that a sentence repeats: enough to recognise it in a log line."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_EXPECTED = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")

TYPES: Final = ("duel", "duels", "interleaving", "impression", "click", "control")
ACTIONS: Final[tuple[str, ...]] = get_args(Action)
_ALLOWED: Final = {
    "type": "one of " + ", ".join(f"'{name}'" for name in TYPES),
    "id": "a string of 1 to 256 characters",
    "experiment": "a string of 1 to 256 characters",
    "a": "an arm's name, a string of 1 to 256 characters",
    "b": "an arm's name, a string of 1 to 256 characters",
    "winner": "'a', 'b', 'tie' or null",
    "wins_a": "an integer from 0 to 2^40",
    "wins_b": "an integer from 0 to 2^40",
    "ties": "an integer from 0 to 2^40",
    "ts": "an integer of milliseconds from 0 to 2^53, or null",
    "teams": "an array with 'a', 'b' or null for each rank",
    "teams[]": "'a', 'b' or null",
    "clicks": "an array of ranks, or of objects with a 'rank'",
    "clicks[]": "a rank (an integer from 0), or an object with a 'rank'",
    "clicks[].rank": "an integer from 0",
    "clicks[].ts": "an integer of milliseconds from 0 to 2^53, or null",
    "clicks[].action": "a string of 1 to 64 characters",
    "action": "one of " + ", ".join(f"'{name}'" for name in ACTIONS),
    "click.action": "a string of 1 to 64 characters",
    "arm": "an arm's name, a string of 1 to 256 characters",
    "docs": "an array with a document's id for each rank, or null",
    "docs[]": "a document's id, a string of 1 to 1024 characters",
    "chances": "an array with a number from 0 to 1, or null, for each rank",
    "chances[]": "a number from 0 to 1, or null",
    "epoch": "an integer from 1 to 2^53, or null",
    "impression": "the id of an impression, a string of 1 to 256 characters",
    "rank": "an integer from 0, or null",
    "doc": "a document's id, a string of 1 to 1024 characters, or null",
}


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
            "invalid_record", f"the value is {_shown(found)}; a record is a JSON object."
        )
    return Rejected("invalid_record", _misfit(found, str(error)))


def _misfit(record: dict[str, Any], message: str) -> str:
    match = _EXPECTED.match(message)
    assert match is not None
    what, path = match["what"], match["path"] or ""
    if what.startswith("Object missing required field"):
        field = what.split("`")[1]
        where = f"{path} misses the field" if path else "the record misses the field"
        path = f"{path}.{field}" if path else field
        return f"{where} '{field}'; it must be {_allowed(path, record)}."
    found = _at(record, path)
    if path == "type" and found in TYPES:
        return "the record has the field 'type' twice, with different values."
    allowed = _allowed(path, record)
    known = [name for name in (*TYPES, *ACTIONS) if f"'{name}'" in allowed]
    hint = nearest(found, known) if isinstance(found, str) and path in {"type", "action"} else ""
    return f"{path} must be {allowed} (found {_shown(found)}){hint or '.'}"


def _allowed(path: str, record: dict[str, Any]) -> str:
    """What a field may hold; the same name may mean different things in different records."""
    path = re.sub(r"\[\d+\]", "[]", path).replace("[...]", "[]")
    return _ALLOWED.get(f"{record.get('type')}.{path}") or _ALLOWED.get(path, "of another type")


def _at(record: Any, path: str) -> Any:
    """The value at a path as msgspec writes it, `clicks[2].rank`."""
    for index, name in _STEP.findall(path):
        try:
            record = record[int(index)] if index else record[name]
        except (KeyError, IndexError, TypeError):
            return record
    return record


def _shown(found: Any) -> str:
    """A value as a sentence repeats it, cut to a readable length."""
    if isinstance(found, dict):
        return "an object"
    if isinstance(found, list):
        return f"an array of {len(found)}"
    text = "null" if found is None else repr(found)
    if isinstance(found, bool):
        text = text.lower()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
