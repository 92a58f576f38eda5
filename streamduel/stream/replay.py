"""Replay: fold the click log again from its beginning, and compare with what was published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, cast

import msgspec
from msgspec import structs

from streamduel.config import Config
from streamduel.connector import Archive, ControlledSource, LogRecord, Poll, Source
from streamduel.errors import ConnectorError, SnapshotError
from streamduel.records import Assignment
from streamduel.stream import continuity, saved_state, snapshot, snapshot_reading
from streamduel.stream.experiment import Experiment
from streamduel.stream.repairs import Repair, Repairs
from streamduel.stream.routing import ClickLog
from streamduel.stream.runner import RESTORE_POLL
from streamduel.stream.task import PartitionTask

DATE: Final = ("offset", "ts", "valid_until")
"""The fields of an assignment that say at which record it was decided, and until when it is valid.
A release that dates records in another way, or applies a deadline at another record, changes only
these."""


@dataclass(slots=True)
class Verdict:
    """The result of a replay, as `streamduel replay --json` prints it.

    Attributes:
        records: the number of records folded again.
        assignments: the number of published assignments that were reproduced byte for byte.
        dated: the number of published assignments that differ only in `offset`, `ts` or
            `valid_until`, as those that an earlier release published may.
        difference: the first difference, as a sentence, or the first of another kind than `dated`
            if there is one; None if there is none.
        states_equal: whether the states were compared, and are equal.
        unchecked: experiments that were removed from the configuration and cannot be folded again:
            before this click log began, or their settings cannot be read any more.
    """

    records: int = 0
    assignments: int = 0
    dated: int = 0
    difference: str | None = None
    states_equal: bool = False
    unchecked: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Audit:
    """The replay of one partition.

    Attributes:
        task: folds the partition again.
        begin: the offset at which the state began in this click log.
        end: the offset of the snapshot.
        states: the hashes of the experiments' states in the snapshot.
        newest: the epochs of their last assignments there.
        epochs: the epochs with which experiments began in this click log.
        changes: the offsets at which experiments start, leave and join again, in ascending order.
        found: the hashes of the experiments' states, of each when it leaves.
        absent: the experiments that have left.
    """

    task: PartitionTask
    begin: int
    end: int
    states: dict[str, str]
    newest: dict[str, int]
    epochs: dict[str, int]
    changes: list[tuple[int, str]]
    found: dict[str, str] = field(default_factory=dict)
    absent: dict[str, Experiment] = field(default_factory=dict)

    def fold(self, records: Sequence[LogRecord]) -> None:
        """Fold records before `end`; experiments start, leave and join at their offsets."""
        while self.changes and records and self.changes[0][0] <= records[-1].offset:
            before = [record for record in records if record.offset < self.changes[0][0]]
            self.task.fold(before)
            records = records[len(before) :]
            self._change()
        self.task.fold([record for record in records if record.offset < self.end])

    def finish(self) -> None:
        """Let experiments start, leave and join that do so at `end`."""
        while self.changes:
            self._change()
        for name in self.task.experiments:
            self._note_state(name)

    def _change(self) -> None:
        self.task.next_offset, name = self.changes.pop(0)
        if name in self.task.experiments:
            self._note_state(name)
            self.absent[name] = self.task.leave(name)
        elif name in self.absent:
            self.task.rejoin(self.absent.pop(name))
        else:
            self.task.start(name)

    def _note_state(self, name: str) -> None:
        self.found[name] = saved_state.state_hash(self.task.experiments[name].state())


def replay(
    config: Config,
    log: Source,
    archive: Archive,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Verdict:
    """Reproduce every published assignment, and report the first that differs.

    The click log is read up to the offset of the newest snapshot. On a compacted topic, an
    assignment that a later one has replaced may be gone; the others must be equal. The replay
    continues after assignments that differ only in their date: what they decide is equal.

    Args:
        config: the configuration that the service ran with.
        log: the click log, all partitions of it.
        archive: the published assignments and the snapshots.
        progress: called with the number of records folded, and of all records.

    Raises:
        SnapshotError: there is no snapshot, the click log no longer has its beginning, or it was
            read in another format.
    """
    verdict = Verdict()
    # The snapshots first: a service that runs commits in between. The click log ends at `seek`.
    audits = _open(config, log, archive, verdict)
    published, twice = _published(archive)
    if twice is not None:
        verdict.difference = f"epoch {twice[1]} of '{twice[0]}' was published twice."
        return verdict
    reproduced = _published_since(archive, audits, published)
    total = sum(audit.end - audit.begin for audit in audits.values())
    unfinished = set(audits)
    while unfinished:
        poll = log.poll(RESTORE_POLL)
        for partition in poll.gained:
            _seek(config, log, partition, audits)
        _check_missed(log, poll, unfinished, audits)
        for partition, records in poll.records.items():
            if partition in audits:
                audits[partition].fold(records)
        verdict.records = sum(audit.task.next_offset - audit.begin for audit in audits.values())
        progress(verdict.records, total)
        for partition in sorted(unfinished):
            audit = audits[partition]
            if audit.task.next_offset >= audit.end or log.caught_up(partition):
                if (cut_off := _cut_off(log, partition, audit)) is not None:
                    verdict.difference = cut_off
                    return verdict
                audit.finish()
                unfinished.discard(partition)
            if not _compare(audit.task, published, reproduced, archive.compacted, verdict):
                return verdict
    _compare_rest(published, reproduced, audits, verdict)
    return verdict


def _published(
    archive: Archive,
) -> tuple[dict[tuple[str, int], bytes], tuple[str, int] | None]:
    """Every published assignment, and the first that was published twice.

    The newest of an experiment may be in a topic twice, byte for byte: a service that returns to a
    former topic publishes the last one again.
    """
    published: dict[tuple[str, int], bytes] = {}
    newest: dict[str, bytes] = {}
    for message in archive.published():
        key = _key(message.value)
        if not key[0]:
            continue
        again = archive.compacted and newest.get(key[0]) == message.value
        if key in published and not again:
            return published, key
        published[key] = newest[key[0]] = message.value
    return published, None


def _published_since(
    archive: Archive, audits: Mapping[int, _Audit], published: Iterable[tuple[str, int]]
) -> set[tuple[str, int]]:
    """The assignments that a service that runs has published since its snapshots were loaded.

    Its present snapshots know them; what they do not know, another program has published.
    """
    former = {name: epoch for audit in audits.values() for name, epoch in audit.newest.items()}
    later = {key for key in published if key[1] > former.get(key[0], key[1])}
    present = (found for _, found in snapshot_reading.newest(archive)) if later else ()
    newest = {name: _epoch(it) for found in present for name, it in found.experiments.items()}
    return {key for key in later if key[1] <= newest.get(key[0], 0)}


def _epoch(saved: snapshot.ExperimentEntry) -> int:
    """The epoch of an experiment's last assignment; 0 before the first."""
    return int((saved.state.get("assignment") or {}).get("epoch", 0))


def _open(config: Config, log: Source, archive: Archive, verdict: Verdict) -> dict[int, _Audit]:
    shape = ClickLog.of(log)
    audits = {}
    for found, (entry, experiments, place) in snapshot_reading.newest(archive):
        partition = entry.partition
        continuity.check_log(entry, shape, partition)
        continuity.check_format(entry, config.log_format)
        origin = snapshot.origin_entries(found.entries)
        settings = _begun(config, experiments, place)
        task = PartitionTask(settings, shape, partition, origin or None, place)
        task.repairs = Repairs([_again(it, task.next_offset) for it in entry.repairs])
        task.controls.judge_as(entry.control)
        epochs = {name: it.decisions.epoch for name, it in task.experiments.items()}
        again = {name: it for name, it in experiments.items() if _folded_again(name, task)}
        verdict.unchecked += sorted(experiments.keys() - again.keys())
        states = {name: saved_state.state_hash(saved.state) for name, saved in again.items()}
        newest = {name: _epoch(saved) for name, saved in again.items()}
        starts = [(it.started_at, name) for name, it in again.items() if name not in epochs]
        gaps = [(at, name) for name, it in again.items() for at in _gaps(it, task.next_offset)]
        changes = sorted([*starts, *gaps], key=itemgetter(0))
        audits[partition] = _Audit(
            task, task.next_offset, found.next_offset, states, newest, epochs, changes
        )
    if not audits:
        raise SnapshotError("there is no snapshot yet, so a replay has nothing to compare with.")
    return audits


def _gaps(saved: snapshot.ExperimentEntry, begin: int) -> Iterator[int]:
    """The offsets, in this click log, at which an experiment leaves and joins by turns."""
    for since, until in saved.gaps or ():
        if until > begin:
            yield from (max(since, begin), until)
    if saved.ended_at is not None:
        yield max(saved.ended_at, begin)


def _folded_again(name: str, task: PartitionTask) -> bool:
    return name in task.experiments or name in task.unstarted


def _begun(
    config: Config, experiments: Mapping[str, snapshot.ExperimentEntry], place: str
) -> Config:
    """The configuration with which a partition's experiments began, ended ones included."""
    settings = dict(config.experiments)
    for name, saved in experiments.items():
        with (
            snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, place)
            if saved.ended_at is None  # else it may have been removed because its policy is gone
            else suppress(*snapshot_reading.UNFIT)
        ):
            begun = continuity.begun(saved)
            begun.create_policy()  # fails if it is not installed
            settings[name] = begun
    return config.model_copy(update={"experiments": settings})


def _again(repair: Repair, begin: int) -> Repair:
    """A repair to apply again, unless the state began after it."""
    return structs.replace(repair, done=repair.at < begin)


def _seek(config: Config, log: Source, partition: int, audits: Mapping[int, _Audit]) -> None:
    task = audits[partition].task if partition in audits else None
    if config.control_topic is not None and task is not None:
        controls, source = task.controls, cast(ControlledSource, log)
        controls.continue_in(source.seek_control(partition, controls.next, controls.takes_marker))
    wanted = None if task is None else task.resume_offset
    start = log.seek(partition, wanted)
    if partition not in audits:
        return
    if start > (wanted or 0):
        raise _deleted(log, partition, wanted or 0, start)
    audits[partition].task.open(start)


def _check_missed(
    log: Source, poll: Poll, unfinished: set[int], audits: Mapping[int, _Audit]
) -> None:
    for partition, begin in poll.missed.items():
        if partition in unfinished:
            raise _deleted(log, partition, audits[partition].task.next_offset, begin)


def _deleted(log: Source, partition: int, first: int, begin: int) -> SnapshotError:
    return SnapshotError(
        f"the click log '{log.topic}' no longer has the records {first} to {begin - 1} of "
        f"partition {partition}; a replay needs all records."
    )


def _cut_off(log: Source, partition: int, audit: _Audit) -> str | None:
    """The sentence about a click log that ends before the offset of the snapshot."""
    reached = audit.task.next_offset
    if reached < audit.end:
        try:
            log.seek(partition, audit.end)
        except ConnectorError:
            return continuity.cut_off(ClickLog.of(log), partition, reached, audit.end)
    return None


def _compare(
    task: PartitionTask,
    published: Mapping[tuple[str, int], bytes],
    reproduced: set[tuple[str, int]],
    compacted: bool,
    verdict: Verdict,
) -> bool:
    """Compare a task's assignments since the last call; False at a difference in content."""
    for message in task.take_commit().assignments:
        key = _key(message.value)
        reproduced.add(key)
        found = published.get(key)
        if found is None and compacted:
            continue
        if found == message.value:
            verdict.assignments += 1
            continue
        difference = _difference(key, found, message.value)
        if found is None or not _differ_in_date(found, message.value):
            verdict.difference = difference
            return False
        verdict.dated += 1
        verdict.difference = verdict.difference or difference
    return True


def _compare_rest(
    published: Mapping[tuple[str, int], bytes],
    reproduced: set[tuple[str, int]],
    audits: Mapping[int, _Audit],
    verdict: Verdict,
) -> None:
    """Check that nothing more was published, and that the states are those of the snapshots."""
    known = {name for audit in audits.values() for name in audit.states}
    begun = {name: epoch for audit in audits.values() for name, epoch in audit.epochs.items()}
    for key in published:
        if key[0] in known and key[1] > begun.get(key[0], 0) and key not in reproduced:
            verdict.difference = _difference(key, published[key], None)
            return
    # Compaction never removes the newest.
    newest = {name: begun.get(name, 0) for name in sorted(known)}
    for name, epoch in reproduced:
        newest[name] = max(newest[name], epoch)
    for key in newest.items():
        if key not in published and key not in begun.items():
            verdict.difference = (
                f"epoch {key[1]} of '{key[0]}', the newest, was not published, or was deleted."
            )
            return
    for audit in audits.values():
        for name, expected in audit.states.items():
            found = audit.found[name]
            if found != expected:
                verdict.difference = (
                    f"the state of '{name}' differs: the snapshot has {expected}, "
                    f"the replay {found}."
                )
                return
    verdict.states_equal = True


def _difference(key: tuple[str, int], found: bytes | None, expected: bytes | None) -> str:
    shown = "nothing" if found is None else found.decode(errors="replace")
    wanted = "nothing" if expected is None else expected.decode()
    return f"epoch {key[1]} of '{key[0]}' differs:\n  published: {shown}\n  replayed: {wanted}"


def _differ_in_date(found: bytes, expected: bytes) -> bool:
    """Whether a published assignment differs from the replayed one only in its date."""
    try:
        published, replayed = (msgspec.json.decode(it, type=Assignment) for it in (found, expected))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    dated = structs.replace(replayed, **{key: getattr(published, key) for key in DATE})
    return msgspec.json.encode(dated) == found


class _Key(msgspec.Struct):
    experiment: str = ""
    epoch: int = 0


def _key(assignment: bytes) -> tuple[str, int]:
    """The experiment and epoch of a published assignment; ("", 0) for any other message."""
    try:
        key: Any = msgspec.json.decode(assignment, type=_Key)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", 0
    return key.experiment, key.epoch
