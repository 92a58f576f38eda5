from collections.abc import Iterator

import pytest

from tests.broker.fixture import Broker, Topics
from tests.integration.kafka_connector.bed import Bed, make_bed


@pytest.fixture
def bed(kafka: Broker, topics: Topics, client: str) -> Iterator[Bed]:
    bed = make_bed(kafka.bootstrap_servers, topics, client=client)
    with bed.stack:
        yield bed
