"""Inspection: reports on the newest snapshots of a running or stopped service."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import structs

from streamduel import policies
from streamduel.connector import Archive
from streamduel.records import Reason
from streamduel.stream import saved_state, snapshot
from streamduel.stream.tallies import Outcomes


class ExperimentReport(msgspec.Struct, frozen=True):
    """One experiment as `streamduel inspect --json` prints it.

    Attributes:
        wins: wins[i][j] is the number of duels that arm i won against arm j; a tie counts half.
        open: the number of open impressions, and of pending clicks, which are in no tally yet.
        offset: the topic of the click log, the experiment's partition, and the next offset in it.
        state_hash: over the whole hard state; equal click logs give equal hashes.
        prior: whether a prior steers its choices; it counts nowhere as duels.
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
    prior: bool = False


class Report(msgspec.Struct, frozen=True):
    """The newest snapshots of all partitions.

    Attributes:
        experiments: by name.
        dead_letters: by reason, of all partitions.
        ignored: ignored records of a foreign click log, by reason.
    """

    experiments: dict[str, ExperimentReport]
    dead_letters: dict[Reason, int]
    ignored: dict[str, int]


def inspect(archive: Archive) -> Report:
    """Read the newest snapshot of every partition.

    Args:
        archive: where the snapshots are.

    Raises:
        SnapshotError: a snapshot cannot be read.
    """
    experiments: dict[str, ExperimentReport] = {}
    dead_letters: Counter[Reason] = Counter()
    ignored: Counter[str] = Counter()
    for partition in archive.partitions():
        found = archive.load(partition)
        if found is None:
            continue
        entry, saved_experiments, place = snapshot.read(found.entries, partition, found.place)
        snapshot.check_offset(found, entry.next)
        dead_letters.update(entry.dead_letters)
        ignored.update(entry.ignored)
        for name, saved in saved_experiments.items():
            with snapshot.restoring(snapshot.EXPERIMENT_PREFIX + name, place):
                saved_state.check(name, saved.state)
                experiments[name] = _report(saved, entry)
    return Report(
        dict(sorted(experiments.items())),
        dict(sorted(dead_letters.items())),
        dict(sorted(ignored.items())),
    )


def _report(saved: snapshot.ExperimentEntry, entry: snapshot.PartitionEntry) -> ExperimentReport:
    state = saved.state
    plan, policy = state["plan"], policies.from_state(state["policy"])
    return ExperimentReport(
        arms=state["arms"],
        status=state["status"],
        policy=saved.settings["policy"]["name"],
        epoch=state["assignment"]["epoch"],
        champion=plan["champion"] if plan else None,
        duels=policy.duels,
        wins=policy.wins.tolist(),
        tallies=structs.asdict(msgspec.convert(state["tallies"], Outcomes)),
        open=state["open"],
        offset={"topic": entry.topic, "partition": entry.partition, "next": entry.next},
        state_hash=snapshot.state_hash(state),
        prior="prior" in policy.parameters,
    )
