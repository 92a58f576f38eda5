"""FastStream: a batch subscriber on its broker of confluent-kafka.

FastStream keeps no state. Here the tallies are in memory and no offset is committed: a restarted
process counts again from the beginning of the topic, and is right, but publishes everything twice.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from faststream import AckPolicy, FastStream
from faststream.confluent import KafkaBroker

from benchmarks.peers.job import Duel, Job, Tally, decode

BATCH = 5000


def build(job: Job) -> FastStream:
    """The application."""
    broker = KafkaBroker(
        job.servers,
        linger_ms=5,
        config={"fetch.queue.backoff.ms": 5, "queued.min.messages": 50_000},
        logger=None,
    )
    tallies: defaultdict[str, Tally] = defaultdict(Tally)

    async def decoded(message: object) -> list[Duel]:
        return [decode(body) for body in message.body]  # type: ignore[attr-defined]

    @broker.subscriber(
        job.topic,
        batch=True,
        max_records=BATCH,
        polling_interval=0.05,
        group_id=job.group,
        group_instance_id=job.group,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        ack_policy=AckPolicy.MANUAL,
        decoder=decoded,
    )
    async def count(duels: list[Duel]) -> None:
        counted = [tallies[duel.experiment].count(duel) for duel in duels]
        results = [result for result in counted if result]
        if results:
            await broker.publish_batch(*results, topic=job.results)

    return FastStream(broker, logger=None)


if __name__ == "__main__":
    asyncio.run(build(Job.given()).run())
