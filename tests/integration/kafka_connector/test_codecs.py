"""Click logs compressed with each codec of Kafka, folded by the service."""

import time

import pytest
from kafka import KafkaProducer

from streamduel.config import Config
from streamduel.stream.runner import Runner
from streamduel.testing import duel
from tests.integration.kafka_connector.bed import Bed

pytestmark = pytest.mark.kafka

PAIR = ("bm25", "ltr")
DUELS = 500
CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "experiments": {"search": {"arms": PAIR, "seed": 1, "decide_every": 50}},
    }
)  # fmt: skip


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_compressed_click_log_is_folded(bed: Bed, codec: str) -> None:
    with KafkaProducer(
        bootstrap_servers=bed.servers, compression_type=codec, linger_ms=200
    ) as producer:
        sent = [
            producer.send(bed.topic, duel("search", number, *PAIR, "a"), key=b"search")
            for number in range(DUELS)
        ]
        assert [future.get(60).offset for future in sent] == list(range(DUELS))
    source = bed.source()
    runner = Runner(CONFIG, source, bed.outlet(source), time.monotonic)
    runner.run(lambda: False, until_end=True)
    experiment = runner.tasks[source.home("search")].experiments["search"]
    assert experiment.policy.duels == DUELS
    assert experiment.tallies["dead_letter"] == 0
