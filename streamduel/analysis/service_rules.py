"""What the service refuses of its own records, decided by the same code."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from streamduel.config.model import LimitSettings
from streamduel.record_rules import contradiction, over_limit
from streamduel.records import Duels, InputEvent

LIMITS: Final = LimitSettings()
"""The limits of the service by default."""

_FIELD: Final = re.compile(r"(?:`\$\.|missing required field `)(\w+)")
_decode: Final = msgspec.json.Decoder(InputEvent).decode


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
    return None
