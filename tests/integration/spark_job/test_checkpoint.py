"""A checkpoint of other settings: refused before Spark has touched it."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import configure
from tests.faults.processes import TIMEOUT
from tests.integration.spark_job.test_equal_counts import append
from tests.integration.spark_job.test_stop import COMMAND
from tests.integration.spark_job.worker import SPARK
from tests.raw_log import ARMS, EXPERIMENTS, raw_log

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def job(config: Path) -> tuple[int, str]:
    """Run the job to the end of the raw topic: its status, and the last line that it prints."""
    conf = [f"--conf={name}={value}" for name, value in SPARK.items()]
    done = subprocess.run(
        [*COMMAND, "run", str(config), "--until-end", "--master=local[2]", *conf],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr.splitlines()[-1]


def test_other_settings_leave_the_checkpoint_as_it_was(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    servers, raw, other = kafka.bootstrap_servers, topics(1), topics(1)
    run = configure(
        tmp_path / "run", servers, topics(1), topics,
        experiments={name: {"arms": ARMS, **settings} for name, settings in EXPERIMENTS.items()},
        spark={"topic": raw, "checkpoint": "state [a]", "partitions": 1},
    )  # fmt: skip
    log = raw_log(3, 50)
    append(servers, raw, log)
    append(servers, other, log)
    status, last = job(run.config)
    assert status == 0, last

    document = yaml.safe_load(run.config.read_text())
    # No batch is known under another group, only by the checkpoint.
    other_settings = copy.deepcopy(document)
    other_settings["source"]["group"] += "-other"
    for key, stays, found in (("partitions", "1", "2"), ("topic", f"'{raw}'", f"'{other}'")):
        other_settings["spark"] = {**document["spark"], key: yaml.safe_load(found)}
        run.config.write_text(yaml.safe_dump(other_settings))
        status, last = job(run.config)
        assert status == 2
        assert f"spark.{key} must stay {stays} with this checkpoint (found {found}); " in last

    run.config.write_text(yaml.safe_dump(document))
    append(servers, raw, log)
    status, last = job(run.config)
    assert status == 0, last
