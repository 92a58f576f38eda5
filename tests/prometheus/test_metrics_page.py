"""The metrics page of a service passes promtool's checks."""

from __future__ import annotations

import subprocess

from tests.prometheus.programs import program
from tests.unit.monitoring.fold import commit, config, duels, fold, task
from tests.unit.monitoring.served import Service

ARMS = ("bm25", "ltr", "dense")


def test_promtool_accepts_the_metrics_of_a_process() -> None:
    service = Service()
    try:
        rails, policy = {"max_share": 0.5}, {"name": "c2b", "horizon": 1000}
        watched = task(config({'a"b\\c\nd': ARMS, "ads": ARMS}, guardrails=rails, policy=policy))
        fold(watched, *duels("ads", 0, "bm25", "ltr", "aab"), b"nonsense")
        commit(service.monitoring.observer, watched)
        service.monitoring.observer.lagging({0: 5})
        page = service.get("/metrics").content
    finally:
        service.close()
    assert b"streamduel_stream_time_seconds" in page
    assert b"process_start_time_seconds" in page
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
