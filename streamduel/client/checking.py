"""Checks of a record before it is sent: what streamduel would refuse raises an error at once."""

from __future__ import annotations

from typing import Final

import msgspec

from streamduel.errors import ClientError
from streamduel.record_rules import contradiction, misfit
from streamduel.records import Click, Duel, Impression, Interleaving

MAX_RECORD_BYTES: Final = 1_000_000
"""Leaves room for the key and for Kafka's overhead within the megabyte that a topic accepts."""

Record = Click | Duel | Impression | Interleaving

_decode: Final = msgspec.json.Decoder(Record).decode


def encode(record: Record) -> bytes:
    """Encode a record as JSON, and decode it as streamduel will do.

    Args:
        record: the record.

    Raises:
        ClientError: streamduel would refuse it.
    """
    value = b""
    try:
        value = msgspec.json.encode(record)
        decoded = _decode(value)
        problem = contradiction(decoded) or _winner_of_one(decoded)
    except msgspec.ValidationError as error:
        problem = misfit(msgspec.json.decode(value), str(error))
    except (UnicodeError, TypeError) as error:
        problem = f"{error}."
    if problem is None and len(value) > MAX_RECORD_BYTES:
        problem = f"it has {len(value)} bytes, and at most {MAX_RECORD_BYTES} are allowed."
    if problem is not None:
        kind = type(record).__name__.lower()
        raise ClientError(f"this {kind} would be refused: {problem}")
    return value


def _winner_of_one(record: Record) -> str | None:
    """Streamduel ignores the winner of an arm served alone; in a service it is a mistake."""
    if isinstance(record, Duel) and record.a == record.b and record.winner is not None:
        return f"winner must be None where one ranker was served alone (found '{record.winner}')."
    return None
