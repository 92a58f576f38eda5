"""Generates the Grafana dashboards.

python -m configs.grafana.generate configs/grafana/dashboards
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import Dashboard, DashboardLink, Row
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from configs.grafana.panel_kinds import Panel
from configs.grafana.panels import experiment, service

TAG = "streamduel"


def dashboards() -> dict[str, str]:
    """The files' texts by name."""
    return {
        "experiment.json": _text(
            "streamduel: experiment",
            "Champion, confidence and regret, and whether ranker services interleave fairly.",
            "streamduel-experiment",
            experiment.variables(),
            experiment.sections(),
        ),
        "service.json": _text(
            "streamduel: service",
            "Lag, commits, connections and dead letters of the service.",
            "streamduel-service",
            service.variables(),
            service.sections(),
        ),
    }


def _text(
    title: str,
    description: str,
    uid: str,
    variables: Sequence[Builder[models.VariableModel]],
    sections: Mapping[str, Sequence[Panel]],
) -> str:
    made = (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([TAG])
        .readonly()  # the next start would overwrite changes
        .timezone("browser")
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .variables(list(variables))
        .link(_others())
    )
    for heading, panels in sections.items():
        made.with_row(Row(heading))
        for panel in panels:
            made.with_panel(panel)
    model = made.build()
    for number, each in enumerate(model.panels or (), 1):
        each.id_val = number
    document: dict[str, Any] = json.loads(JSONEncoder().encode(model))
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _others() -> DashboardLink:
    """Links to the other dashboards."""
    kind = models.DashboardLinkType.DASHBOARDS
    link = DashboardLink("streamduel").type(kind).tags([TAG])
    return link.as_dropdown(False).keep_time(True).include_vars(False)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for file_name, text in dashboards().items():
        (folder / file_name).write_text(text, encoding="utf-8")
