"""Sample records of each format, and the results of a translator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamduel.formats import Ignored, Translator
from streamduel.records import InputEvent, Rejected

TS = 1_790_000_000_000
"""2026-09-21T14:13:20Z."""

QUERY: dict[str, Any] = {
    "application": "shop", "query_id": "q-1", "client_id": "c-1", "user_query": "red shoes",
    "query_response_id": "r-1", "query_response_hit_ids": ["d1", "d2", "d3"],
    "query_attributes": {
        "experiment": "search", "a": "bm25", "b": "ltr-v1", "teams": ["bm25", "ltr-v1", None],
        "epoch": 17,
    },
    "timestamp": "2026-09-21T14:13:20.000Z",
}  # fmt: skip
CLICK: dict[str, Any] = {
    "application": "shop", "action_name": "click", "query_id": "q-1", "client_id": "c-1",
    "session_id": "s-1", "user_id": "", "message": None, "message_type": "CLICK_THROUGH",
    "event_attributes": {
        "experiment": "search",
        "object": {"object_id": "d2", "object_id_field": "sku", "description": "a shoe"},
        "position": {"ordinal": 2},
    },
    "timestamp": "2026-09-21T14:13:25.250Z",
}  # fmt: skip
CREDITED: dict[str, Any] = {
    **CLICK, "event_attributes": {**CLICK["event_attributes"], "search_config": "ltr-v1"},
}  # fmt: skip
RESPONSE: dict[str, Any] = {
    "type": "response", "query_id": "q-1", "ts": TS, "experiment": "search",
    "rq": "{!ltr model=ltr-v1 model=_OriginalRanking_ reRankDocs=2 efi.words='a shoe'}",
    "docs": [
        {"id": "d1", "score": 2.5, "[interleaving]": "_OriginalRanking_"},
        {"id": "d2", "score": 1.5, "[interleaving]": "ltr-v1"},
        {"id": "d3", "score": 0.5, "[interleaving]": "ltr-v1"},
    ],
}  # fmt: skip
SOLR_CLICK: dict[str, Any] = {
    "type": "click", "query_id": "q-1", "ts": TS + 5000, "experiment": "search", "doc": "d2",
}  # fmt: skip


def changed(record: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A record with some fields changed; `a__b` is field b of field a, `...` takes one away."""
    copy: dict[str, Any] = json.loads(json.dumps(record))
    for path, value in changes.items():
        *outer, last = path.split("__")
        inner = copy
        for name in outer:
            inner = inner.setdefault(name, {})
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return copy


def text(record: Mapping[str, Any], **changes: Any) -> bytes:
    return json.dumps(changed(record, **changes)).encode()


def verdict(translate: Translator, value: bytes) -> str:
    """The reason for which a record gives no event."""
    try:
        events = translate(value)
    except Ignored as ignored:
        return f"ignored: {ignored.reason}"
    except Rejected as rejected:
        return f"{rejected.reason}: {rejected.sentence}"
    raise AssertionError(f"it gives {events}")


def only(events: list[InputEvent]) -> Any:
    """The event of a record that gives one."""
    (event,) = events
    return event
