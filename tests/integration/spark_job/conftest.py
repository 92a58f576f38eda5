"""Java for the Spark job, and the jars that it takes from Maven Central."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from streamduel_spark.job import KAFKA_SOURCE
from tests.broker.fixture import without_broker
from tests.cached import cached
from tests.integration.spark_job.worker import SPARK

FETCH_SECONDS: Final = 300.0  # 12 MB of jars, and a start of Spark

FETCH: Final = f"""
from streamduel_spark.job import create_session
create_session(1, "local[1]", {SPARK}).stop()
"""


@pytest.fixture(scope="session", autouse=True)
def jars() -> None:
    """Fetch the jars once: two processes that fetch at once damage each other's files in Ivy."""
    if shutil.which("java") is None:
        without_broker("Spark needs Java 17 or later")
    digest = hashlib.sha256(KAFKA_SOURCE.encode()).hexdigest()[:8]
    cached(f"spark-jars-{digest}", _fetch)


def _fetch(scratch: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", FETCH],
        capture_output=True, text=True, timeout=FETCH_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    fetched = scratch / "fetched"
    fetched.mkdir()
    return fetched
