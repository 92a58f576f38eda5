"""The peers, in the order of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from benchmarks.peers.job import Job, Result
from benchmarks.peers.peer import JavaPeer, Peer
from benchmarks.peers.programs.streamduel_service import configuration
from streamduel import __version__
from streamduel.cli.inspect import read_report
from streamduel.config import load
from streamduel.records import Assignment

_assignment = msgspec.json.Decoder(Assignment).decode


class Streamduel(Peer):
    """streamduel, whose results are assignments; `streamduel inspect` has the wins."""

    @property
    def topic_settings(self) -> Mapping[str, str]:
        """Assignments are kept until they are replaced."""
        return {"cleanup.policy": "compact"}

    def result(self, value: bytes) -> Result:
        """An assignment as a result."""
        assignment = _assignment(value)
        return Result(assignment.experiment, assignment.duels)

    def wins(self, job: Job) -> Mapping[str, Mapping[str, int]]:
        """The wins in the newest snapshots."""
        report = read_report(load(configuration(job), {}))
        found: dict[str, dict[str, int]] = {}
        for name, experiment in report.experiments.items():
            found[name] = {
                f"{winner}>{loser}": int(experiment.wins[i][j])
                for i, winner in enumerate(experiment.arms)
                for j, loser in enumerate(experiment.arms)
                if experiment.wins[i][j]
            }
        return found


MSGSPEC = "msgspec==0.22.0"
PYSPARK = ("pyspark==4.2.0", "pandas==3.1.1", "protobuf==7.36.2", "pyarrow==26.0.1", MSGSPEC)

OURS = Streamduel(
    name="streamduel",
    version=__version__,
    exactly=True,
    settings="`streamduel run` with kafka-python, `decide_every: 100`, no monitoring",
    program="streamduel_service",
    unchanged=True,
    ours=True,
)

QUIX = Peer(
    name="Quix Streams, exactly once",
    version="3.28.1",
    exactly=True,
    settings=(
        "ids and counts in its state (RocksDB, with changelog topics); fixed `transactional.id`, "
        "so that a restart ends the open transaction; `fetch.queue.backoff.ms: 5`"
    ),
    program="quix_streams",
    requirements=("quixstreams==3.28.1", MSGSPEC),
    variant="exactly-once",
)

STREAMS = JavaPeer(
    name="Kafka Streams, RocksDB",
    version="4.3.1, Java 17",
    exactly=True,
    settings=(
        "`exactly_once_v2`; a processor with a store of ids and a cached store of counts, both "
        "with changelog topics; Jackson; default JVM options"
    ),
    program="DuelCounts",
    maven="kafka_streams",
    variant="rocksdb",
)

PEERS: tuple[Peer, ...] = (
    OURS,
    replace(
        OURS,
        name="streamduel, confluent",
        settings="the same with `client: confluent`",
        variant="confluent",
    ),
    STREAMS,
    replace(
        STREAMS,
        name="Kafka Streams, in memory",
        settings="the same with stores in memory, also with changelog topics",
        variant="memory",
    ),
    QUIX,
    replace(
        QUIX,
        name="Quix Streams, at least once",
        exactly=False,
        settings="the same without transactions",
        variant="at-least-once",
    ),
    Peer(
        name="bytewax",
        version="0.21.1",
        exactly=False,
        settings=(
            "`stateful_flat_map`, with recovery; a snapshot every 10 s, as without recovery; "
            "batches of 5,000; `fetch.queue.backoff.ms: 5`, `queued.min.messages: 50000`"
        ),
        program="bytewax_flow",
        requirements=("bytewax[kafka]==0.21.1", MSGSPEC),
    ),
    Peer(
        name="FastStream",
        version="0.7.8",
        exactly=False,
        settings=(
            "batches of 5,000 from confluent-kafka; it keeps no state, so the counts are in memory "
            "and a restart reads the topic from its beginning; no commits; librdkafka as bytewax"
        ),
        program="faststream_batch",
        requirements=("faststream[confluent]==0.7.8", MSGSPEC),
    ),
    Peer(
        name="Faust",
        version="0.15.3 (faust-streaming)",
        exactly=False,
        settings=(
            "ids and counts in tables in memory, with changelog topics; `producer_linger: 0.005`; "
            "a twentieth of the records; its `exactly_once` took 690 µs a record in a trial"
        ),
        program="faust_agent",
        requirements=("faust-streaming==0.15.3", MSGSPEC),
        variant="at_least_once",
        share=0.05,
        uncommitted=True,
    ),
    Peer(
        name="Spark Structured Streaming",
        version="4.2.0, Java 17",
        exactly=False,
        settings=(
            "`local[2]`, 4 shuffle partitions, RocksDB with changelog checkpoints; "
            "`dropDuplicatesWithinWatermark`, then `transformWithStateInPandas`; micro-batches of "
            "at most 100,000 records. Its state is exact; its Kafka sink repeats after a failure"
        ),
        program="spark_streaming",
        requirements=PYSPARK,
        maven="spark_kafka",
    ),
)
