"""Dead letters: a record that could not be used, kept whole, with the reason."""

from __future__ import annotations

import base64
import codecs
from typing import Final

import msgspec

from streamduel.connector import LogRecord, Message
from streamduel.records import DeadLetter, Rejected

MAX_MESSAGE_BYTES: Final = 1_000_000
"""A dead letter must fit a topic with Kafka's default `max.message.bytes` of 1,048,588."""

KEPT_BYTES: Final = 131_072
"""What is kept of a value that does not fit: JSON may write each byte with six characters."""

MAX_KEY_BYTES: Final = 1024
"""An experiment's name has at most 256 characters, of at most 4 bytes each."""

_encode = msgspec.json.Encoder().encode


def dead_letter(record: LogRecord, rejected: Rejected, topic: str, partition: int) -> Message:
    """The message that keeps a rejected record, under the record's own key."""
    value = record.value
    letter = _letter(record, rejected, topic, partition, value)
    if value is not None and len(letter) > MAX_MESSAGE_BYTES:
        letter = _letter(record, rejected, topic, partition, value[:KEPT_BYTES], len(value))
    key = record.key
    return Message(None if key is None else bytes(key[:MAX_KEY_BYTES]), letter)


def _letter(
    record: LogRecord,
    rejected: Rejected,
    topic: str,
    partition: int,
    value: bytes | None,
    whole_size: int | None = None,
) -> bytes:
    text, encoding = _text(value, cut=whole_size is not None)
    return _encode(
        DeadLetter(
            reason=rejected.reason,
            error=rejected.sentence,
            topic=topic,
            partition=partition,
            offset=record.offset,
            value=text,
            encoding="base64" if encoding else None,
            truncated=whole_size is not None,
            size=whole_size,
        )
    )


def _text(value: bytes | None, *, cut: bool) -> tuple[str | None, bool]:
    """The value as text, and whether it had to be written in base64."""
    if value is None:
        return None, False
    try:
        # A cut may fall into the middle of a character: that one is left out.
        return codecs.utf_8_decode(value, "strict", not cut)[0], False
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii"), True


def named_experiment(record: LogRecord) -> str:
    """The experiment that a rejected record names, in its field or else as its key, or ""."""
    try:
        name = msgspec.json.decode(record.value or b"", type=_Named).experiment
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        name = ""
    return name or (record.key or b"").decode(errors="replace")


class _Named(msgspec.Struct):
    experiment: str = ""
