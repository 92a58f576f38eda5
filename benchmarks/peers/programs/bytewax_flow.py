"""Bytewax: a dataflow with the state of each experiment under its key."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import bytewax.operators as op
import msgspec
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.recovery import init_db_dir

from benchmarks.peers.job import Duel, Job, Tally, decode

MODULE = "benchmarks.peers.programs.bytewax_flow"
BATCH = 5000
SNAPSHOT_SECONDS = "10"
"""The default without recovery."""
CONSUMER = {"fetch.queue.backoff.ms": "5", "queued.min.messages": "50000"}


def keyed(message: KafkaSourceMessage) -> tuple[str, Duel]:
    """A duel under its experiment."""
    duel = decode(message.value)
    return duel.experiment, duel


def count(tally: Tally | None, duel: Duel) -> tuple[Tally, list[bytes]]:
    """Count one duel in the state of its experiment."""
    tally = tally or Tally()
    result = tally.count(duel)
    return tally, [result] if result else []


def flow(text: str) -> Dataflow:
    """The dataflow of a job, which `bytewax.run` calls."""
    job = msgspec.json.decode(text, type=Job)
    made = Dataflow("duels")
    source = KafkaSource([job.servers], [job.topic], batch_size=BATCH, add_config=CONSUMER)
    duels = op.map("decode", op.input("duels", made, source), keyed)
    results = op.stateful_flat_map("count", duels, count)
    messages = op.map("message", results, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
    kafka.output("publish", messages, brokers=[job.servers], topic=job.results)
    return made


def run(job: Job) -> None:
    """Become bytewax's own runner, with a recovery store that outlives it."""
    if not any(Path(job.state).iterdir()):
        init_db_dir(job.state, 1)
    program = f"{MODULE}:flow({job.text()!r})"
    recovery = ("-r", job.state, "-s", SNAPSHOT_SECONDS, "-b", "0")
    os.execl(sys.executable, sys.executable, "-m", "bytewax.run", program, *recovery)


if __name__ == "__main__":
    run(Job.given())
