"""streamduel itself: `streamduel run` with its own policy, assignments, snapshots and guardrails.

It does more than the job: at every hundredth duel its policy decides, and it publishes assignments
in place of counts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.job import EVERY, Job
from benchmarks.records import arms

ARMS = 6


def configuration(job: Job) -> Path:
    """The configuration file of a job."""
    source: dict[str, Any] = {
        "connector": "kafka",
        "bootstrap_servers": job.servers,
        "topic": job.topic,
        "group": job.group,
        "instance": job.group,
        "create_topics": True,
    }
    if job.variant:
        source["client"] = job.variant
    experiment = {"arms": arms(ARMS), "decide_every": EVERY}
    document = {
        "source": source,
        "sink": {
            "connector": "kafka",
            "assignments": job.results,
            "dead_letters": f"{job.group}-dead-letters",
        },
        "snapshots": {"connector": "kafka", "topic": f"{job.group}-snapshots"},
        "monitoring": None,
        "experiments": dict.fromkeys(job.experiments, experiment),
    }
    path = Path(job.state) / "streamduel.yaml"
    path.write_text(json.dumps(document))
    return path


def run(job: Job) -> None:
    """Become the service."""
    os.execl(sys.executable, sys.executable, "-m", "streamduel", "run", configuration(job))


if __name__ == "__main__":
    run(Job.given())
