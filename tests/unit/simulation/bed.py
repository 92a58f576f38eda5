"""Settings and results for the tests of runs and of the journal."""

from __future__ import annotations

from typing import Any

from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings


def settings(**changes: Any) -> Settings:
    given = {"policies": [("rucb", {}), ("uniform", {})], "horizon": 200, "runs": 5, "seed": 7}
    return Settings(ARXIV, **{**given, **changes})


def outcome(results: Results) -> dict[str, Any]:
    """What was found, without how long it took."""
    report = results.report("x")
    for policy in report["policies"]:
        assert policy.pop("seconds_per_run") > 0
    return report
