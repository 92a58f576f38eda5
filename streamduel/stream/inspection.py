"""Looking into snapshots: what a running or stopped service knows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from streamduel.connector import Archive
from streamduel.records import Reason
from streamduel.stream import snapshot


class ExperimentReport(msgspec.Struct, frozen=True):
    """One experiment as `streamduel inspect --json` prints it.

    Attributes:
        wins: wins[i][j] is how often arm i beat arm j, a tie a half each way.
        open: how many impressions wait for clicks, and clicks, in no tally yet, for impressions.
        offset: the log's topic, the experiment's partition, and the next offset there.
        state_hash: over the whole hard state; equal logs give equal hashes.
    """

    arms: list[str]
    status: str
    policy: str
    epoch: int
    champion: str | None
    duels: int
    wins: list[list[float]]
    tallies: dict[str, int]
    open: dict[str, int]
    offset: dict[str, Any]
    state_hash: str


class Report(msgspec.Struct, frozen=True):
    """The newest snapshots of all partitions.

    Attributes:
        experiments: by name.
        dead_letters: of the whole log, by reason.
        ignored: records of a foreign log that are of no concern, by reason.
    """

    experiments: dict[str, ExperimentReport]
    dead_letters: dict[Reason, int]
    ignored: dict[str, int]


def inspect(archive: Archive) -> Report:
    """Read the newest snapshot of every partition.

    Args:
        archive: where they are kept.

    Raises:
        SnapshotError: one of them cannot be read.
    """
    experiments: dict[str, ExperimentReport] = {}
    dead_letters: Counter[Reason] = Counter()
    ignored: Counter[str] = Counter()
    for partition in archive.partitions():
        found = archive.load(partition)
        if found is None:
            continue
        entry = snapshot.partition_entry(found.entries, partition)
        dead_letters.update(entry.dead_letters)
        ignored.update(entry.ignored)
        for name, saved in snapshot.experiment_entries(found.entries).items():
            experiments[name] = _report(saved, entry)
    return Report(
        dict(sorted(experiments.items())),
        dict(sorted(dead_letters.items())),
        dict(sorted(ignored.items())),
    )


def _report(saved: snapshot.ExperimentEntry, entry: snapshot.PartitionEntry) -> ExperimentReport:
    state = saved.state
    plan = state["plan"]
    return ExperimentReport(
        arms=state["arms"],
        status=state["status"],
        policy=saved.settings["policy"]["name"],
        epoch=state["assignment"]["epoch"],
        champion=plan["champion"] if plan else None,
        duels=state["policy"]["counts"]["duels"],
        wins=state["policy"]["counts"]["wins"],
        tallies=state["tallies"],
        open=state["open"],
        offset={"topic": entry.topic, "partition": entry.partition, "next": entry.next},
        state_hash=snapshot.state_hash(state),
    )
