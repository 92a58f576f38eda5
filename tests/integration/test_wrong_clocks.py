"""Records with wrong timestamps on a real Kafka, on a topic with the producers' time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import EXPERIMENTS, configure_faults, visible
from tests.faults.processes import inspect, streamduel
from tests.logs import values

pytestmark = pytest.mark.kafka

RECORDS = values(3, 2000, EXPERIMENTS)
STAMP = 1_790_000_000_000
YEAR_2100 = 4_102_444_800_000


def test_the_year_2100_changes_no_result(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    outcomes = []
    for wrong in (set(), {700, 701, 1_200, 1_999}):
        log = topics(4, message_timestamp_after_max_ms=2**63 - 1)
        run = configure_faults(tmp_path / str(len(wrong)), kafka.bootstrap_servers, log, topics)
        with KafkaProducer(bootstrap_servers=run.servers) as producer:
            for number, (experiment, value) in enumerate(RECORDS):
                stamp = YEAR_2100 if number in wrong else STAMP + 100 * number
                producer.send(log, value, key=experiment.encode(), timestamp_ms=stamp)
        done = streamduel("run", run.config, "--until-end")
        assert done.returncode == 0, done.stderr
        assert ("time outliers" in done.stderr) == bool(wrong)
        experiments = inspect(run.config)["experiments"]
        outcomes.append({name: (it["wins"], it["tallies"]) for name, it in experiments.items()})
        newest = [json.loads(messages[-1]) for messages in visible(run)[0].values()]
        assert max(it["ts"] for it in newest) <= STAMP + 100 * len(RECORDS)
    assert outcomes[0] == outcomes[1]
