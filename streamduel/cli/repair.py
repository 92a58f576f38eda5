"""`streamduel repair`: repairs after a damaged click log or a wrong clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from streamduel.cli.app import out, say
from streamduel.cli.arguments import ConfigPath, load_config
from streamduel.cli.control import check_action, user
from streamduel.cli.repair_backlog import unfolded
from streamduel.cli.repair_opening import Load, gain, has_new_controls, open_log, own, reader
from streamduel.config import LoadedConfig
from streamduel.connector import PartitionCommit, Snapshot, Source
from streamduel.errors import (
    ConfigurationError,
    ConnectorError,
    SnapshotError,
    counted,
    enumerated,
)
from streamduel.records import MAX_TIME
from streamduel.stream import repair_commits
from streamduel.stream.commit import commit
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import PartitionEntry

ACTIONS: Final[dict[str, frozenset[str]]] = {
    "skip": frozenset({"partition", "offset"}),
    "time": frozenset({"partition", "to"}),
    "new-log": frozenset({"at-end"}),
    "repartition": frozenset({"from"}),
}
"""The options of each action; all of them are required except `OPTIONAL`."""

OPTIONAL: Final = frozenset({"to", "at-end"})

ActionName = Annotated[
    str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS) + ".", show_default=False)
]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="P", min=0, help="skip, time: the partition.")
]
Offset = Annotated[
    int | None, typer.Option("--offset", metavar="N", min=0, help="skip: the record's offset.")
]
Time = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TIME",
        help="time: the stream time, in milliseconds or as 2026-11-22T17:00:00Z.  [default: the "
        "median of the newest records' timestamps]",
    ),
]
Former = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="CONFIG", help="repartition: the configuration that was used so far."
    ),
]
AtEnd = Annotated[
    bool,
    typer.Option(
        "--at-end",
        help="new-log: continue at the present end of the click log instead of its beginning.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show what would be done; write nothing, and take over no partition."
    ),
]


class Plan(NamedTuple):
    """What a repair writes, and what it says about it."""

    commits: Sequence[PartitionCommit]
    sentences: Sequence[str]


def repair(
    action: ActionName,
    config: ConfigPath,
    partition: Partition = None,
    offset: Offset = None,
    to: Time = None,
    former: Former = None,
    at_end: AtEnd = False,
    dry_run: DryRun = False,
) -> None:
    """Skip a record, set stream time, or continue in another click log.

    Stop the service first: the command needs its partitions. It reads the snapshots, changes them
    in one commit, and writes what it did into them, so that `streamduel replay` agrees. With
    `--dry-run` it only shows what it would do, also while the service runs.

    - **skip** `--partition P --offset N`: ignore the record at offset N, which the service has not
      folded yet.

    - **time** `--partition P [--to TIME]`: set a stream time that records with a wrong clock have
      moved into the future.

    - **new-log** `[--at-end]`: `source.topic` was deleted and created again, the file was replaced,
      or `source` names another click log with as many partitions. Champions, counts and epochs are
      kept; the fold continues with the first record of the new log, or with `--at-end` at its
      present end: use `--at-end` if brokers have lost the newest records of the same log. If only
      the control topic is new, the fold of the click log continues where it was, and the new
      control topic is read from its beginning.

    - **repartition** `--from FORMER`: the topic has another number of partitions, or `source` names
      a topic with another number. Each experiment moves to its new home partition. CONFIG must name
      a new `source.group` and new `snapshots`; with a new `source.topic`, a control topic must be
      new, too.

    For example:

        streamduel repair time search.yaml --partition 0 --dry-run
    """
    given = {"partition": partition, "offset": offset, "to": to, "from": former}
    given["at-end"] = at_end or None
    _check(action, {name for name, value in given.items() if value is not None})
    loaded = load_config(config)
    before = load_config(former) if former is not None else None
    if before is not None:
        _check_group(loaded, before)
    with ExitStack() as stack:
        log = stack.enter_context(closing(open_log(loaded)))
        if partition is not None and partition >= log.partitions:
            raise ConfigurationError(
                f"--partition must be below {log.partitions}, the number of partitions of "
                f"'{log.topic}' (found {partition})."
            )
        source: Source | None = None
        if dry_run:
            load = reader(loaded, stack)
        else:
            source, outlet = own(loaded, partition, stack)
            load = outlet.load
        plan = _plan(action, partition, offset, to, log, load, before, loaded, at_end)
        if source is not None:
            for each in plan.commits:
                source.seek(each.partition, each.next_offset)
            commit(outlet, plan.commits)
    for sentence in plan.sentences:
        say(out, sentence)
    done = "Nothing was written (--dry-run)." if dry_run else "Done; start the service."
    say(out, done)


def _check(action: str, given: set[str]) -> None:
    """Refuse an unknown action, and options that are not those of the action."""
    check_action(action, ACTIONS)
    for name in sorted(given - ACTIONS[action]):
        raise ConfigurationError(f"{action} takes no --{name}.")
    for name in sorted(ACTIONS[action] - given - OPTIONAL):
        raise ConfigurationError(f"{action} needs --{name}.")


def _check_group(loaded: LoadedConfig, before: LoadedConfig) -> None:
    """Refuse the former group, which has offsets of the topic that are not those of CONFIG."""
    found, former = (
        [getattr(it.source, key, None) for key in ("bootstrap_servers", "topic", "group")]
        for it in (loaded, before)
    )
    if found == former and found[-1] is not None:
        raise ConfigurationError(f"source.group must be a new group (found '{found[-1]}' again).")


def _plan(
    action: str, partition: int | None, offset: int | None, to: str | None,
    log: Source, load: Load, before: LoadedConfig | None, loaded: LoadedConfig, at_end: bool,
) -> Plan:  # fmt: skip
    note = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} by {user()}"
    gain(log)
    if partition is not None:
        found = _required(load(partition), partition)
        if action == "skip":
            assert offset is not None
            return _skip(found, partition, offset, log, note)
        decoder = RecordDecoder.of(loaded.config)
        return _set_time(found, partition, _moment(to), log, decoder, note)
    shape = ClickLog.of(log)
    if before is not None:
        return _repartition(shape, log, load, before, loaded.config.control_topic, note)
    return _new_log(shape, log, load, loaded, note, at_end=at_end)


def _required(found: Snapshot | None, partition: int) -> Snapshot:
    if found is None:
        raise SnapshotError(
            f"partition {partition} has no snapshot, so there is nothing to repair."
        )
    return found


def _skip(found: Snapshot, partition: int, offset: int, log: Source, note: str) -> Plan:
    made = repair_commits.skip(found, partition, offset, note)
    if not _holds(log, partition, offset + 1):
        raise ConfigurationError(
            f"--offset must be that of a record, from {made.next_offset} on, in partition "
            f"{partition} of '{log.topic}' (found {offset}, beyond its end)."
        )
    return Plan(
        [made],
        [
            f"Partition {partition}: the record at offset {offset} is skipped; the next record to "
            f"fold is {made.next_offset}."
        ],
    )


def _set_time(
    found: Snapshot, partition: int, to: int | None, log: Source, decoder: RecordDecoder, note: str
) -> Plan:
    entry = repair_commits.read(found, partition).partition
    if to is None:
        to = repair_commits.newest_time(log, decoder, partition, entry.next)
    if to is None:
        raise ConfigurationError(
            f"partition {partition} has no records with timestamps; give the time with --to."
        )
    return Plan(
        [repair_commits.set_time(found, partition, to, note)],
        [
            f"Partition {partition}: stream time is {_shown(entry.stream_time)}; it becomes "
            f"{_shown(to)} before offset {entry.next}, when the next record is folded."
        ],
    )


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        if text.isdigit():
            found = int(text)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            found = int(1000 * moment.timestamp())
    except ValueError:
        found = -1
    if not 0 < found <= MAX_TIME:
        raise ConfigurationError(
            f"--to must be milliseconds since the epoch, or a time such as 2026-11-22T17:00:00Z "
            f"(found '{text[:80]}')."
        )
    return found


def _shown(milliseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%SZ} ({milliseconds} ms)"


def _new_log(
    shape: ClickLog, log: Source, load: Load, loaded: LoadedConfig, note: str, *, at_end: bool
) -> Plan:
    saved = {}
    for partition in range(shape.partitions):
        found = load(partition)
        if found is None:
            continue
        saved[partition] = repair_commits.read(found, partition)
        before = saved[partition].partition.partitions
        if before != shape.partitions:  # then other partitions may not be there to be loaded
            raise ConfigurationError(
                f"'{shape.topic}' has {counted(shape.partitions, 'partition')}, the snapshots are "
                f"of {before}; use repartition."
            )
    if not saved:
        raise SnapshotError("there is no snapshot, so there is nothing to repair.")
    new = {n: it for n, it in saved.items() if not _continues(it.partition, shape, log)}
    begins = {n: _end(log, n) if at_end else log.seek(n, None) for n in new}
    new_controls = has_new_controls(loaded, saved)
    if new_controls:  # the other partitions continue where they were, with the new control topic
        begins = {n: it.partition.next for n, it in saved.items()} | begins
        new = saved
    if not new:
        raise ConfigurationError(
            f"the snapshots were made from the present '{shape.topic}'; there is no new log."
        )
    move = repair_commits.Move(new, shape, begins, "new_log", note, new_controls)
    return Plan(
        move.commits(),
        [
            *(_control_topic(loaded.config.control_topic, move) if new_controls else []),
            *(
                f"Partition {partition}: the state of {counted(len(experiments), 'experiment')} "
                f"continues at offset {begins[partition]} of '{shape.topic}'; {entry.next} was the "
                f"next offset of '{entry.topic}'."
                for partition, (entry, experiments, _) in new.items()
            ),
        ],
    )


def _continues(entry: PartitionEntry, shape: ClickLog, log: Source) -> bool:
    """Whether a partition is the one of the snapshot, and has not been truncated."""
    same = (entry.topic, entry.log_id) == (shape.topic, shape.log_id(entry.partition))
    return same and _holds(log, entry.partition, entry.next)


def _end(log: Source, partition: int) -> int:
    """The end of a partition; of what producers append meanwhile, some may be behind it."""
    begin = log.seek(partition, None)
    lags, held_back = log.lags([partition]), log.stable_offset_lags([partition])
    if partition not in lags or partition not in held_back:
        raise ConnectorError(
            f"the end of partition {partition} of '{log.topic}' is unknown; a compressed file does "
            f"not tell it, and can only be continued without --at-end."
        )
    return begin + lags[partition] - held_back[partition]


def _holds(log: Source, partition: int, offset: int) -> bool:
    """Whether the click log goes up to an offset."""
    try:
        log.seek(partition, offset)
    except ConnectorError:
        return False
    return True


def _repartition(
    shape: ClickLog, log: Source, load: Load, before: LoadedConfig, controls: str | None, note: str
) -> Plan:
    saved = {}
    with closing(before.open_archive()) as archive:
        for partition in archive.partitions():
            found = archive.load(partition)
            if found is not None:
                saved[partition] = repair_commits.read(found, partition)
    if not saved:
        raise SnapshotError("--from: there is no snapshot, so there is nothing to move.")
    for partition in range(shape.partitions):
        if load(partition) is not None:
            raise ConfigurationError(
                f"CONFIG already has a snapshot of partition {partition}; repartition needs new "
                f"snapshots, and on Kafka a new group."
            )
    begins = {partition: log.seek(partition, None) for partition in range(shape.partitions)}
    move = repair_commits.Move(saved, shape, begins, "repartition", note)
    move.check_control_topic(controls)
    return Plan(
        move.commits(),
        [
            *unfolded(move, log, before),
            *(
                f"Experiment '{name}': partition {old} → {new}."
                for name, (old, new) in sorted(move.homes().items())
            ),
            *_control_topic(controls, move),
        ],
    )


def _control_topic(topic: str | None, move: repair_commits.Move) -> list[str]:
    """A sentence: from which offset on the control topic is read, if there is one."""
    if topic is None:
        return []
    continued = [partition for partition in move.begins if move.continues(partition)]
    if not continued:
        return [f"Control topic '{topic}': read from its beginning."]
    parts = [_told(continued, "continues where it was", "continue where they were")]
    if others := [partition for partition in move.begins if partition not in continued]:
        one, several = "is read from its beginning", "are read from their beginnings"
        parts.append(_told(others, one, several))
    return [f"Control topic '{topic}': {'; '.join(parts)}."]


def _told(partitions: list[int], one: str, several: str) -> str:
    names = enumerated([str(partition) for partition in partitions])
    return f"partition {names} {one}" if len(partitions) == 1 else f"partitions {names} {several}"
