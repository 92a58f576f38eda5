"""The configurations of the tests of repairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import configure_faults
from tests.integration.repair_bed import Configure


@pytest.fixture
def configure(kafka: Broker, topics: Topics, tmp_path: Path) -> Configure:
    """Configurations of one click log, each with its own outputs and state."""
    log = topics(4)
    return lambda name: configure_faults(tmp_path / name, kafka.bootstrap_servers, log, topics)
