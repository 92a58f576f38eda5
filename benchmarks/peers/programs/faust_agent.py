"""Faust: an agent with a table of ids and a table of counts."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterable
from typing import Any

import faust

from benchmarks.peers.job import COMMIT_MS, EVERY, PARTITIONS, Job


def build(job: Job) -> faust.App:
    """The application."""
    application = faust.App(
        job.group,
        broker=f"kafka://{job.servers}",
        datadir=job.state,
        topic_partitions=PARTITIONS,
        topic_replication_factor=1,
        processing_guarantee=job.variant,
        broker_commit_interval=COMMIT_MS / 1000,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=job.group,
        producer_linger=0.005,
        web_enabled=False,
    )
    seen = application.Table("seen", default=int)
    counts = application.Table("counts", default=dict)
    results = application.topic(job.results)

    @application.agent(application.topic(job.topic, value_serializer="json"))
    async def count(duels: AsyncIterable[dict[str, Any]]) -> None:
        async for duel in duels:
            if seen[duel["id"]]:
                continue
            seen[duel["id"]] = 1
            a, b, name = duel["a"], duel["b"], duel["experiment"]
            pair = f"{a}>{b}" if duel["winner"] == "a" else f"{b}>{a}"
            wins = counts[name]
            wins[pair] = wins.get(pair, 0) + 1
            counts[name] = wins
            records = sum(wins.values())
            if records % EVERY == 0:
                await results.send(
                    key=name, value={"experiment": name, "records": records, "wins": wins}
                )

    return application


if __name__ == "__main__":
    app = build(Job.given())
    sys.argv[1:] = ["worker", "--loglevel", "error", "--without-web"]
    app.main()
