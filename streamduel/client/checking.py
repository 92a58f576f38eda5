"""Refusing at once, and in the caller's face, what would become a dead letter later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from streamduel.errors import ClientError
from streamduel.records import Click, Duel, Impression, Interleaving

MAX_RECORD_BYTES: Final = 1_000_000
"""Leaves room for the key and for what Kafka adds within the megabyte that a topic takes."""

Record = Click | Duel | Impression | Interleaving

_decode: Final = msgspec.json.Decoder(Record).decode


def encode(record: Record) -> bytes:
    """A record as JSON, decoded once as streamduel will do it.

    Args:
        record: as a ranker service made it.

    Raises:
        ClientError: streamduel would refuse it.
    """
    what = type(record).__name__.lower()
    try:
        value = msgspec.json.encode(record)
        problem = next(_contradictions(_decode(value)), None)
    except (msgspec.ValidationError, UnicodeError, TypeError) as error:
        raise ClientError(f"this {what} would be refused: {error}.") from None
    if problem is not None:
        raise ClientError(f"this {what} would be refused: {problem}.")
    if len(value) > MAX_RECORD_BYTES:
        raise ClientError(
            f"this {what} would be refused: it has {len(value)} bytes, and at most "
            f"{MAX_RECORD_BYTES} are allowed."
        )
    return value


def _contradictions(record: Record) -> Iterator[str]:
    """What no single field has wrong."""
    if isinstance(record, Duel):
        if (record.a == record.b) != (record.winner is None):
            yield (
                f"winner must be 'a', 'b' or 'tie' in a duel of two rankers, and None where one "
                f"was served alone (found {record.winner!r} for '{record.a}' and '{record.b}')"
            )
    elif isinstance(record, Click):
        if record.rank is None and record.doc is None:
            yield "it must have a rank or a document (found neither)"
    else:
        ranks = len(record.teams)
        docs = record.docs if isinstance(record, Impression) else None
        for name, part in (("docs", docs), ("chances", record.chances)):
            if part is not None and len(part) != ranks:
                yield f"{name} must have as many ranks as teams, {ranks} (found {len(part)})"
        for click in record.clicks if isinstance(record, Interleaving) else ():
            rank = click if isinstance(click, int) else click.rank
            if rank >= ranks:
                yield f"clicks must be within the list of {ranks} ranks, from 0 (found {rank})"
