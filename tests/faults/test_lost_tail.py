"""A broker without a replica comes back without the newest records of the click log."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import make_topics, on_both_clients, without_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.local_kafka import LocalKafka
from tests.faults.kafka_runs import (
    EXPERIMENTS,
    FIRST_STAMP,
    PARTITIONS,
    Run,
    configure_faults,
    visible,
)
from tests.faults.processes import inspect, streamduel
from tests.faults.services import next_offsets
from tests.logs import values

LOST = 30

RECORDS = values(1, 4000, EXPERIMENTS)


def produce(run: Run, begin: int, end: int) -> None:
    # Small batches: they are lost as a whole.
    with KafkaProducer(bootstrap_servers=run.servers, batch_size=2**10) as producer:
        for number, (experiment, value) in enumerate(RECORDS[begin:end], begin):
            producer.send(
                run.log, value, key=experiment.encode(), timestamp_ms=FIRST_STAMP + number
            )


def fold(run: Run) -> None:
    done = streamduel("run", run.config, "--until-end")
    assert done.returncode == 0, done.stderr


def duels(run: Run) -> dict[str, int]:
    return {name: found["duels"] for name, found in inspect(run.config)["experiments"].items()}


def cut(broker: LocalKafka, topic: str, partition: int, end: int) -> None:
    """Remove the batches with records from an offset on; the broker is down."""
    folder = broker.directory / "data" / f"{topic}-{partition}"
    (segment,) = folder.glob("*.log")
    data, size = segment.read_bytes(), 0
    while True:
        base, length = struct.unpack_from(">qi", data, size)
        (last,) = struct.unpack_from(">i", data, size + 23)
        if base + last >= end:
            break
        size += 12 + length
    segment.write_bytes(data[:size])
    derived = [path for path in folder.iterdir() if "index" in path.suffix]
    producers = list(folder.glob("*.snapshot"))
    # Without a checkpoint, the broker reads the partition from its beginning.
    checkpoints = folder.parent.glob("*-offset-checkpoint")
    for path in (*derived, *producers, *checkpoints):
        path.unlink()


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.full
@on_both_clients
def test_a_partition_that_has_lost_its_newest_records(tmp_path: Path, client: str) -> None:
    """The service says so; repaired, it folds no record twice, and a replay agrees."""
    try:
        broker = LocalKafka().__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    try:
        topics = make_topics(broker.bootstrap_servers, "lost-tail", [])
        log = topics(PARTITIONS)
        run = configure_faults(
            tmp_path / "run", broker.bootstrap_servers, log, topics, client=client
        )
        produce(run, 0, 3000)
        fold(run)
        folded, before = next_offsets(run)[0], duels(run)
        worst = max(range(PARTITIONS), key=folded.__getitem__)
        broker.kill()
        cut(broker, log, worst, folded[worst] - LOST)
        broker.start()
        left = next_offsets(run)[1][worst]
        refused = streamduel("run", run.config, "--until-end")
        assert refused.returncode == 2, refused.stdout
        assert f"ends at offset {left}, before the next offset of the snapshot" in refused.stderr
        assert (
            "new-log CONFIG' folds it again from its beginning, and with --at-end" in refused.stderr
        )
        repaired = streamduel("repair", "new-log", run.config, "--at-end")
        assert repaired.returncode == 0, repaired.stderr
        assert f"Partition {worst}: the state" in repaired.stdout
        assert f"continues at offset {left} of '{log}'" in repaired.stdout
        assert repaired.stdout.count("Partition ") == 1, "the others have lost nothing"
        fold(run)
        assert duels(run) == before
        produce(run, 3000, 4000)
        fold(run)
        assert all(more > before[name] for name, more in duels(run).items())
        replayed = streamduel("replay", run.config)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        assert visible(run)[0].keys() == {name.encode() for name in EXPERIMENTS}
    finally:
        broker.close()
