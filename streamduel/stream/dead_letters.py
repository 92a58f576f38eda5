"""Dead letters: what the output contains of a record that cannot be used."""

from __future__ import annotations

import base64
import codecs
from typing import Final, Literal

import msgspec
from msgspec import structs

from streamduel.connector import LogRecord, Message
from streamduel.records import MAX_NAME, DeadLetter, Rejected

MAX_MESSAGE_BYTES: Final = 1_000_000
"""A dead letter must fit a topic with Kafka's default `max.message.bytes` of 1,048,588."""

KEPT_BYTES: Final = 131_072
"""Bytes kept of a value that does not fit: JSON may write each byte with six characters."""

MAX_KEY_BYTES: Final = 4 * MAX_NAME
"""A record's key is an experiment's name, of at most 4 bytes per character."""

_encode = msgspec.json.Encoder().encode


def dead_letter(
    record: LogRecord,
    rejected: Rejected,
    topic: str,
    partition: int,
    experiment: str | None = None,
) -> Message:
    """The message that keeps a rejected record, under the record's own key."""
    if isinstance(record.value, Rejected):  # the source has not read all of it
        value, size = record.value.beginning, record.value.size
    else:
        value, size = record.value, 0
    text, encoding = _text(value, cut=size > 0)
    letter = DeadLetter(
        rejected.reason, rejected.sentence, topic, partition, record.offset, text, encoding
    )
    message = _encode(letter)
    if value is not None and (size or len(message) > MAX_MESSAGE_BYTES):
        text, encoding = _text(value[:KEPT_BYTES], cut=True)
        letter = structs.replace(
            letter, value=text, encoding=encoding, truncated=True, size=size or len(value)
        )
        message = _encode(letter)
    key = record.key
    kept = None if key is None else bytes(key[:MAX_KEY_BYTES])
    return Message(kept, message, letter, experiment)


def _text(value: bytes | None, *, cut: bool = False) -> tuple[str | None, Literal["base64"] | None]:
    """The value as text, and its encoding if it is not UTF-8."""
    if value is None:
        return None, None
    try:
        # A cut may fall into the middle of a character, which is then left out.
        return codecs.utf_8_decode(value, "strict", not cut)[0], None
    except UnicodeDecodeError:
        return base64.b64encode(value).decode("ascii"), "base64"
