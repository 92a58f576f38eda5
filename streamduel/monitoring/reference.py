"""Generates docs/metrics.md from `reference.md.jinja` and the declarations of the metrics.

python -m streamduel.monitoring.reference docs/metrics.md
"""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from jinja2 import Template
from msgspec import structs
from prometheus_client import generate_latest
from prometheus_client.core import Metric

from streamduel.monitoring.declaration import Declaration
from streamduel.monitoring.exposition import REUSE
from streamduel.monitoring.figures import Distribution, Figures
from streamduel.monitoring.metrics import COMMIT_SECONDS, METRICS, POLL_RECORDS
from streamduel.monitoring.outlook import Outlook
from streamduel.monitoring.view_parts import GuardrailEffect, Impressions
from streamduel.monitoring.views import (
    MAX_ARMS_ON_DEMAND,
    ExperimentView,
    PartitionView,
    Wanted,
)
from streamduel.stream.runner import LAG_INTERVAL
from streamduel.stream.tallies import Outcomes

PROCESS_METRICS: Final = (
    ("process_virtual_memory_bytes", "gauge", "Address space in use.", "1.182183424e+09"),
    (
        "process_resident_memory_bytes",
        "gauge",
        "Memory in use; compare it with the container's limit.",
        "9.8435072e+07",
    ),
    (
        "process_start_time_seconds",
        "gauge",
        "Start of the process, in seconds since 1970. `changes(…[1h])` counts restarts.",
        "1.79000000025e+09",
    ),
    (
        "process_cpu_seconds_total",
        "counter",
        "Processor time; one core folds one partition, so a `rate` near 1 is the limit.",
        "41.27",
    ),
    ("process_open_fds", "gauge", "Open files and connections.", "23.0"),
    ("process_max_fds", "gauge", "Limit of open files and connections.", "1024.0"),
)
"""prometheus_client's metrics of the process: name, type, description, sample value. They are read
from /proc, which only Linux has."""


def example() -> Figures:
    """Invented figures, from which the page shows a sample of each metric."""
    arms = ("ltr-v3", "bm25", "ltr-v1")
    wins = np.array([[0.0, 610.0, 395.5], [190.0, 0.0, 70.0], [204.5, 80.0, 0.0]])
    outcomes = Outcomes(accepted=2034, duplicate=12, dead_letter=2, capped=36)
    view = ExperimentView(
        name="search",
        arms=arms,
        version=2046,
        records=2084,
        tallies=structs.asdict(outcomes),
        open={"impressions": 40, "clicks": 2},
        duels=2030,
        champion=0,
        candidates=1,
        epoch=17,
        assignment=None,
        wins=wins,
        ties=np.zeros_like(wins),
        alone=(480, 0, 0),
        arm_duels=tuple(map(round, wins.sum(axis=1) + wins.sum(axis=0))),
        seeks="condorcet",
        batch=(4, 512),
        policy="c2b",
        stage="c2b",
        status="running",
        guardrails=GuardrailEffect(0.1, ((1, 1, 150),)),
        fallback=("bm25", 600.0),
        last_record_at=0.0,
        impressions=Impressions(1500, 410, (7480, 7520), 3, ((110, 170), (760, 740))),
        wanted=Wanted("c2b", {}, 0.95, 0),
    )
    stream_time = 1_790_000_000_000
    return Figures(
        connector="kafka",
        commit_seconds=Distribution.empty(*COMMIT_SECONDS).plus(0.0125),
        poll_records=Distribution.empty(*POLL_RECORDS).plus(400),
        connected=True,
        partitions={
            3: PartitionView(stream_time, 0.0, {"search": view}, {"invalid_json": 2}, 12, 40),
        },
        lags={3: 120},
        stable_offset_lags={3: 30},
        dead_letters={3: {"invalid_json": 2}},
        restoring=frozenset({4}),
        restores=1,
        commit_failures=1,
        now=0.25,
        outlooks={"search": Outlook(181_440.0, 103_680.0, 388_800.0)},
    )


def reference() -> str:
    """The page."""
    figures = example()
    totals = dict.fromkeys(("process", "partition", "experiment", "arm"), 0)
    for metric in METRICS:
        totals[metric.per] += series(metric, figures)
    source = resources.files("streamduel.monitoring") / "reference.md.jinja"
    text = source.read_text(encoding="utf-8")
    template: Template = Template(text, trim_blocks=True, keep_trailing_newline=True)
    return template.render(
        lag=LAG_INTERVAL,
        reuse=REUSE,
        many=MAX_ARMS_ON_DEMAND,
        totals=totals,
        metrics=METRICS,
        process_metrics=PROCESS_METRICS,
        series=lambda metric: series(metric, figures),
        sample=lambda metric: _sample(metric.family(figures)),
    )


def series(metric: Declaration, figures: Figures) -> int:
    """The series of a metric for each thing that has a set of them."""
    experiments = list(figures.experiments())
    sets = {
        "arm": sum(len(view.arms) for view in experiments),
        "experiment": len(experiments),
        "partition": len(figures.partitions),
        "process": 1,
    }
    return len(metric.family(figures).samples) // sets[metric.per]


def _sample(family: Metric) -> str:
    """The first sample with a value other than 0, as it is scraped."""
    only: Any = SimpleNamespace(collect=lambda: [family])
    lines = generate_latest(only).decode().splitlines()
    return next(line for line in lines if not line.startswith("#") and not line.endswith(" 0.0"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
