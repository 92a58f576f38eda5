"""SIGTERM to the process group of the Spark job, as a service manager sends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import configure
from tests.faults.processes import TIMEOUT
from tests.integration.spark_job.test_equal_counts import append
from tests.integration.spark_job.worker import SPARK
from tests.raw_log import ARMS, EXPERIMENTS, raw_log

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

COMMAND = [sys.executable, "-c", "from streamduel_spark.command import main; main()"]


def test_java_that_ends_first_is_no_error(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    servers, raw = kafka.bootstrap_servers, topics(1)
    run = configure(
        tmp_path / "run", servers, topics(1), topics,
        experiments={name: {"arms": ARMS, **settings} for name, settings in EXPERIMENTS.items()},
        spark={"topic": raw, "checkpoint": "checkpoint", "partitions": 1, "interval_ms": 500},
    )  # fmt: skip
    append(servers, raw, raw_log(3, 50))
    conf = [f"--conf={name}={value}" for name, value in SPARK.items()]
    printed = tmp_path / "printed"
    with printed.open("w") as file:
        job = subprocess.Popen(
            [*COMMAND, "run", str(run.config), "--master=local[2]", *conf],
            stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + TIMEOUT
        while "batch 0: " not in printed.read_text():
            assert job.poll() is None, printed.read_text()
            assert time.monotonic() < deadline, printed.read_text()
            time.sleep(0.1)
        os.killpg(job.pid, signal.SIGTERM)
        status = job.wait(TIMEOUT)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    text = printed.read_text()
    assert (status, "Traceback" in text) == (0, False), text
