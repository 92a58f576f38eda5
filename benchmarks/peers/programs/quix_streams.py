"""Quix Streams: a stateful function over a StreamingDataFrame."""

from __future__ import annotations

from typing import Any

from quixstreams import Application, State

from benchmarks.peers.job import COMMIT_MS, EVERY, Job


def count(duel: dict[str, Any], state: State) -> dict[str, Any] | None:
    """Count one duel in the state of its key."""
    name = duel["id"]
    if state.exists(name):
        return None
    state.set(name, 1)
    a, b = duel["a"], duel["b"]
    pair = f"{a}>{b}" if duel["winner"] == "a" else f"{b}>{a}"
    wins = state.get("wins", {})
    wins[pair] = wins.get(pair, 0) + 1
    state.set("wins", wins)
    records = state.get("records", 0) + 1
    state.set("records", records)
    if records % EVERY:
        return None
    return {"experiment": duel["experiment"], "records": records, "wins": wins}


def run(job: Job) -> None:
    """Run until killed."""
    application = Application(
        job.servers,
        consumer_group=job.group,
        auto_offset_reset="earliest",
        processing_guarantee=job.variant,
        commit_interval=COMMIT_MS / 1000,
        state_dir=job.state,
        consumer_extra_config={"group.instance.id": job.group, "fetch.queue.backoff.ms": 5},
        producer_extra_config=(
            {"transactional.id": job.group} if job.variant == "exactly-once" else {}
        ),
    )
    duels = application.dataframe(application.topic(job.topic))
    results = duels.apply(count, stateful=True).filter(lambda result: result is not None)
    results.to_topic(application.topic(job.results))
    application.run()


if __name__ == "__main__":
    run(Job.given())
