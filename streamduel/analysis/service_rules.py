"""What the service refuses of its own records, decided by the same code."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from streamduel.config.model import LimitSettings
from streamduel.record_rules import contradiction, over_limit
from streamduel.records import Duels, InputEvent, Rejected
from streamduel.stream.decode import SLOW_NUMBER, RecordDecoder

LIMITS: Final = LimitSettings()
"""The limits of the service by default."""

_FIELD: Final = re.compile(r"(?:`\$\.|missing required field `)(\w+)")
_decode: Final = msgspec.json.Decoder(InputEvent).decode
_decode_as_service: Final = RecordDecoder(LIMITS.max_record_bytes)


def refused_field(text: str | None) -> str | None:
    """The field because of which the service refuses a record; None if it takes it.

    Whether its arms compete is not known here.

    >>> refused_field('{"type": "duel", "id": 5}'), refused_field('{"type": NaN}')
    ('id', 'JSON or size')
    """
    if text is None or len(text.encode()) > LIMITS.max_record_bytes:
        return "JSON or size"
    try:
        record = _decode(text)
    except msgspec.ValidationError as error:
        found = _FIELD.findall(str(error))
        return found[-1] if found else "fields"
    except (ValueError, RecursionError):
        return "JSON or size"
    if contradiction(record) is not None:
        return "fields"
    if over_limit(record, LIMITS) is not None:
        return "counts" if isinstance(record, Duels) else "fields"
    return "chances" if _has_slow_number(text.encode()) else None


def _has_slow_number(value: bytes) -> bool:
    """Whether the service refuses a valid record because of a number such as 1e-310.

    >>> _has_slow_number(b'{"chances":[1e-310]}'), _has_slow_number(b'{"id":"1e-310 "}')
    (True, False)
    """
    if b"[" not in value or not SLOW_NUMBER.search(value):
        return False
    try:
        _decode_as_service(value)
    except Rejected:
        return True
    return False
