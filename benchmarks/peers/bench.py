"""Runs of peers on a broker."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.broker import create_topic
from benchmarks.peers.clicks import Clicks, Topic
from benchmarks.peers.feed import KafkaFeed
from benchmarks.peers.job import PARTITIONS, Job
from benchmarks.peers.ledger import wrong_counts
from benchmarks.peers.peer import Peer
from benchmarks.peers.processes import Program
from benchmarks.peers.runner import Figures, Recovery, Results, measure, recover


class Bench:
    """Runs peers on one broker.

    Args:
        servers: the broker.
        directory: for states and logs.
    """

    def __init__(self, servers: str, directory: Path) -> None:
        self._servers = servers
        self._directory = directory
        self._runs = 0

    def run(self, peer: Peer, warm: Clicks, main: Clicks) -> tuple[Figures, Recovery]:
        """Measure a peer, then kill it once over the same records."""
        self._runs += 1
        name = f"duels-{self._runs}"
        job = self._job(peer, name, main)
        with (
            Topic(self._servers, name, warm, main, uncommitted=peer.uncommitted) as topic,
            self._start(peer, job) as program,
            KafkaFeed(job) as feed,
        ):
            figures = measure(program, Results(peer, feed), topic.open, warm, main)
        figures = replace(figures, mistakes=figures.mistakes + uncounted(peer, job, main))
        job = self._job(peer, name, main)
        with KafkaFeed(job) as feed:
            recovery = recover(lambda: self._start(peer, job), Results(peer, feed), main)
        return figures, replace(recovery, mistakes=recovery.mistakes + uncounted(peer, job, main))

    def _job(self, peer: Peer, topic: str, clicks: Clicks) -> Job:
        """A job with its own names, and an empty state."""
        self._runs += 1
        group = f"peer-{self._runs}"
        create_topic(self._servers, f"{group}-results", PARTITIONS, peer.topic_settings)
        state = tempfile.mkdtemp(dir=self._directory, prefix=f"{group}-")
        names = [*clicks.values]
        return Job(self._servers, topic, f"{group}-results", group, state, names, peer.variant)

    def _start(self, peer: Peer, job: Job) -> Program:
        log = self._directory / f"{job.group}.log"
        return Program(peer.command(job), peer.environment(), Path(job.state), log)


def uncounted(peer: Peer, job: Job, main: Clicks) -> list[str]:
    """What is wrong with the wins of a peer whose results have none."""
    found = peer.wins(job)
    if found is None:
        return []
    expected = main.expected.wins
    return [line for name in expected for line in wrong_counts(name, found[name], expected[name])]
