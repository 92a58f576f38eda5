"""The rules with all their times made shorter: what takes minutes happens within seconds."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

DURATION: Final = re.compile(r"\b(\d+)([smhd])\b")


def scaled(rules: str, factor: float) -> str:
    """The same rules, with every range, every offset and every `for` divided by the factor.

    Numbers are left alone: a threshold is a threshold.

    >>> print(scaled('''
    ... groups:
    ... - name: it
    ...   rules:
    ...   - {alert: Gone, expr: 'increase(a_total[5m] offset 1h) > 5', for: 10m}
    ... ''', 60))
    groups:
    - name: it
      rules:
      - alert: Gone
        expr: increase(a_total[5000ms] offset 60000ms) > 5
        for: 10000ms
    """
    document: dict[str, Any] = yaml.safe_load(rules)
    for group in document["groups"]:
        for rule in group["rules"]:
            for key in ("expr", "for"):
                if key in rule:
                    rule[key] = DURATION.sub(lambda found: _shorter(found, factor), rule[key])
    return yaml.safe_dump(document, sort_keys=False, width=1000).rstrip()


def _shorter(found: re.Match[str], factor: float) -> str:
    return f"{1000 * int(found[1]) * UNITS[found[2]] / factor:.0f}ms"
