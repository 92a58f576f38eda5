"""The rules with all times shortened from minutes to seconds."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

LEAST_FOR: Final = 12000
"""The shortest `for` in milliseconds, six scrapes of the tests: it tolerates a process that is
slow for a moment, and such moments are not shortened."""

LEAST_RANGE: Final = 4000
"""The shortest range in milliseconds, two scrapes of the tests."""

DURATION: Final = re.compile(r"\b(\d+)([smhd])\b")


def scaled(rules: str, factor: float) -> str:
    """The same rules, with every range, every offset and every `for` divided by the factor.

    A `for` does not come below `LEAST_FOR`, a range or an offset not below `LEAST_RANGE`. Numbers
    are left alone: a threshold is a threshold.

    >>> print(scaled('''
    ... groups:
    ... - name: it
    ...   rules:
    ...   - {alert: Gone, expr: 'increase(a_total[5m] offset 1h) > 5', for: 20m}
    ...   - {alert: Down, expr: 'up == 0', for: 2m}
    ... ''', 60))
    groups:
    - name: it
      rules:
      - alert: Gone
        expr: increase(a_total[5000ms] offset 60000ms) > 5
        for: 20000ms
      - alert: Down
        expr: up == 0
        for: 12000ms
    """
    document: dict[str, Any] = yaml.safe_load(rules)
    for group in document["groups"]:
        for rule in group["rules"]:
            for key, least in (("expr", LEAST_RANGE), ("for", LEAST_FOR)):
                if key in rule:
                    rule[key] = _shorter(rule[key], factor, least)
    return yaml.safe_dump(document, sort_keys=False, width=1000).rstrip()


def _shorter(text: str, factor: float, least: float) -> str:
    def shortened(found: re.Match[str]) -> str:
        return f"{max(least, 1000 * int(found[1]) * UNITS[found[2]] / factor):.0f}ms"

    return DURATION.sub(shortened, text)
