import contextlib
import gc
from collections.abc import Iterator

import pytest

from tests.broker.fixture import Broker, Topics
from tests.integration.kafka_connector.bed import Bed, make_bed


@pytest.fixture
def bed(kafka: Broker, topics: Topics, client: str) -> Iterator[Bed]:
    bed = make_bed(kafka.bootstrap_servers, topics, client=client)
    with bed.stack:
        yield bed


@pytest.fixture
def _collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect the garbage of a test while its warning filters apply."""
    yield
    for phase in ("setup", "call", "teardown"):  # they hold errors, which hold sockets
        with contextlib.suppress(KeyError):
            caplog.get_records(phase).clear()
    gc.collect()
