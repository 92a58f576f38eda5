"""Snapshot entries changed by hand, with right checksums."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from streamduel.checksum import seal, unsealed
from streamduel.stream.snapshot import Entries, canonical

Change = Callable[[dict[str, Any]], object]


def altered(text: bytes, change: Change) -> bytes:
    """A sealed JSON object with a change, sealed again."""
    content = json.loads(unsealed(text))
    change(content)
    return seal(canonical(content))


def changed(entries: Mapping[str, bytes], name: str, change: Change) -> dict[str, bytes]:
    """Entries of which one is changed as if the service had written it so."""
    made = {**entries, name: altered(entries[name], change)}
    together = Entries(made).together
    made["partition"] = altered(made["partition"], lambda entry: entry.update(entries=together))
    return made
