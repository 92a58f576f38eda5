"""The dashboards and the rules of configs/."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).parents[2]
PROMETHEUS: Final = ROOT / "configs" / "prometheus"
GRAFANA: Final = ROOT / "configs" / "grafana"
RULES: Final = PROMETHEUS / "rules.yml"
RUNBOOK: Final = ROOT / "docs" / "runbook.md"


def dashboard(name: str) -> dict[str, Any]:
    """A dashboard, as Grafana reads it."""
    found: dict[str, Any] = json.loads((GRAFANA / "dashboards" / f"{name}.json").read_text())
    return found


class Query(NamedTuple):
    """The queries of a panel."""

    panel: str
    expression: str
    instant: bool


def queries(name: str) -> Iterator[Query]:
    """The queries of all panels of a dashboard."""
    for panel in dashboard(name)["panels"]:
        for target in panel.get("targets", ()):
            yield Query(panel["title"], target["expr"], target.get("instant", False))


def substituted(expression: str, chosen: Mapping[str, str]) -> str:
    """An expression with values for its variables, as Grafana sends it."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], expression)


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts of rules.yml by name."""
    document = yaml.safe_load(RULES.read_text())
    return {rule["alert"]: rule for group in document["groups"] for rule in group["rules"]}
