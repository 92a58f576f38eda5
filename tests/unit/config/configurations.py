"""Valid configurations, and changes to them."""

from __future__ import annotations

import copy
from typing import Any

import yaml

GOOD: dict[str, Any] = {
    "source": {"connector": "files", "path": "clicks.jsonl"},
    "sink": {"connector": "files", "path": "out/"},
    "snapshots": {"connector": "files", "path": "state/"},
    "monitoring": None,
    "experiments": {"search": {"arms": ["bm25", "ltr-v1", "ltr-v2"]}},
}

KAFKA: dict[str, Any] = {
    "source": {
        "connector": "kafka", "bootstrap_servers": ["b:1"], "topic": "clicks", "group": "g",
        "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u",
        "sasl_plain_password": "hunter2",
    },
    "sink": {"connector": "kafka", "assignments": "a", "dead_letters": "d"},
    "snapshots": {"connector": "kafka", "topic": "s"},
    "monitoring": None,
    "experiments": GOOD["experiments"],
}  # fmt: skip

GONE = object()
"""As a value: leave the key out."""


def changed(changes: dict[str, Any], base: dict[str, Any] = GOOD) -> dict[str, Any]:
    """A configuration with some keys, such as `a.b.c`, set or left out."""
    document = copy.deepcopy(base)
    for where, value in changes.items():
        *path, last = where.split(".")
        part = document
        for step in path:
            part = part.setdefault(step, {})
        if value is GONE:
            del part[last]
        else:
            part[last] = value
    return document


def written(document: Any) -> str:
    """As YAML."""
    return yaml.safe_dump(document, allow_unicode=True)
