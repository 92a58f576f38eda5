"""The marker of a control record: where in the click log the control record takes effect.

Connectors that read a control topic write and resolve markers; no other program may write them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from streamduel.checksum import checksum
from streamduel.connector import LogRecord
from streamduel.records import MARKER, Rejected

_BEGINNING: Final = b'{"type":"%b"' % MARKER.encode()


class Marker(msgspec.Struct, tag_field="type", tag=MARKER, frozen=True):
    """A record of the click log: the control record at `control_offset` takes effect here."""

    id: str
    experiment: str
    control_offset: int
    digest: str


_decode: Final = msgspec.json.Decoder(Marker).decode


def digest(value: bytes | Rejected | None) -> str:
    """The digest of a control record that its marker has."""
    return checksum(value if isinstance(value, bytes) else b"")


def marker_in(record: LogRecord) -> Marker | None:
    """The marker that a record of the click log is; None if it is none."""
    value = record.value
    if not isinstance(value, bytes) or not value.startswith(_BEGINNING):
        return None
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
