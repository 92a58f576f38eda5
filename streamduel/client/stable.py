"""Chance that is the same on every machine: numbers that follow from names by a hash."""

from __future__ import annotations

import json
from hashlib import blake2b

Part = str | int | None


def stable_number(*parts: Part, size: int = 8) -> int:
    """An integer that looks random and follows from its parts alone.

    It is the BLAKE2b hash of the parts as a JSON array in ASCII, read from its highest byte. So
    all instances of a service agree without talking to one another, whatever they run on, and
    `hash`, which differs from process to process, has no say.

    Args:
        *parts: names and numbers; neither their borders nor their order are lost.
        size: bytes of the number.

    >>> stable_number("search", 17, "session 1")
    2039231684787168567
    """
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest())


def stable_fraction(*parts: Part) -> float:
    """The same as a number from 0 to below 1, a multiple of 2**-53.

    Args:
        *parts: as for `stable_number`.
    """
    return (stable_number(*parts) >> 11) * 2.0**-53
