"""Destinations of the click log: the writer's contract, and a writer of JSON Lines files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from streamduel.errors import ClientError
from streamduel.record_rules import contradiction, misfit
from streamduel.records import Click, Duel, Impression, Interleaving

MAX_RECORD_BYTES: Final = 1_000_000
"""Leaves room for the key and for Kafka's overhead within the megabyte that a topic accepts."""

Record = Click | Duel | Impression | Interleaving

_decode: Final = msgspec.json.Decoder(Record).decode


class Message(NamedTuple):
    """A record to write: its key, which is the experiment's name, and its JSON."""

    key: bytes
    value: bytes


class Written(NamedTuple):
    """The result of a write; messages that it does not name are written.

    Attributes:
        again: the messages to retry in this order: not written, or not known to be.
        refused: the number of messages that can never be written.
    """

    again: Sequence[Message] = ()
    refused: int = 0


class Writer(Protocol):
    """A destination of records. All methods are called from one thread."""

    def write(self, messages: Sequence[Message]) -> Written:
        """Write messages; after any exception all of them are retried."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class FileWriter:
    """Appends records to a JSON Lines file, which the files connector reads, and creates it.

    Several processes may write to one file: each appends whole lines in one call. The lines are not
    forced to the disk; a power failure may lose the last seconds.

    Raises:
        ClientError: the file cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise ClientError(f"the file {path} cannot be written to: {error.strerror}.") from None

    def write(self, messages: Sequence[Message]) -> Written:
        """Append messages; those that a full disk cuts off are retried, on a line of their own."""
        size = os.fstat(self._file).st_size
        torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        text = b"\n" * torn + b"".join(message.value + b"\n" for message in messages)
        written = os.write(self._file, text)
        return Written(messages[text.count(b"\n", 0, written) - torn :])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def encode(record: Record) -> bytes:
    """Encode a record as JSON, and check it as streamduel will do.

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
