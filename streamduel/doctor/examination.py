"""The checks of `streamduel doctor`, in their order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from streamduel.config import LoadedConfig
from streamduel.config.changes import Difference, differences
from streamduel.connector import LogRecord, SourceOptions
from streamduel.diagnosis import Finding, Grade
from streamduel.doctor.controls import check_controls
from streamduel.doctor.fold import fold, open_task
from streamduel.errors import MissingError, SnapshotError, StreamduelError, counted, shortened
from streamduel.formats import Ignored
from streamduel.records import Control, DeadLetter, Rejected
from streamduel.stream import continuity, control_order, saved_state, snapshot, snapshot_reading
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.routing import ClickLog

NEWEST: Final = 200
"""The newest records of each partition that are read."""

MAX_PARTITIONS: Final = 100
"""The most partitions of which records are read."""

READ_SECONDS: Final = 10.0
"""Timeout of reading all of them, once their offsets are known."""

POLL_SECONDS: Final = 0.2

QUIET_MS: Final = 3_600_000
"""A newest record that is older than this is worth a warning."""

NO_SNAPSHOTS: Final = (
    "there are none yet; `streamduel run` starts at the beginning of the click log."
)

MAX_SENTENCES: Final = 5
"""Kinds of refused records that are reported, the most frequent first."""


@dataclass
class _Sample:
    """The newest records of the click log.

    Attributes:
        records: by partition.
        begin: the first offset of each partition.
        next: the end of each partition.
        complete: the partitions that were read to their end.
        in_time: whether all of them were.
        log: the shape of the click log.
    """

    records: dict[int, list[LogRecord]] = field(default_factory=dict)
    begin: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    in_time: bool = True
    log: ClickLog | None = None


@dataclass
class _Counts:
    """What the newest records of all partitions would do.

    Attributes:
        letters: the dead letters.
        outcomes: records that are neither dead letters nor valid, by outcome.
        seen: records of each experiment.
    """

    letters: list[DeadLetter] = field(default_factory=list)
    outcomes: Counter[str] = field(
        default_factory=lambda: Counter(duplicate=0, capped=0, ignored=0)
    )
    seen: Counter[str] = field(default_factory=Counter)


def examine(loaded: LoadedConfig, now: float | None = None) -> Iterator[Finding]:
    """Check everything that a configuration names; writes nothing, and owns no partition.

    Args:
        loaded: a valid configuration.
        now: seconds since 1970; by default, the present time.
    """
    now = time.time() if now is None else now
    diagnosis = loaded.source_connector.diagnose(loaded.source, loaded.sink, loaded.snapshots)
    yield from diagnosis.findings
    if not diagnosis.reachable:
        return
    saved: dict[int, snapshot_reading.Saved] = {}
    try:
        sample = _read(loaded)
    except StreamduelError as error:
        if not _is_created_by_run(error):
            yield Finding("records", "failed", str(error))
        sample = _Sample()
    yield from _snapshots(loaded, sample, saved)
    yield from check_controls(loaded, saved)
    if sample.log is not None:
        yield from _records(loaded, sample, saved)
        yield from _clock(loaded, sample, now)
    yield from _elsewhere(loaded, diagnosis.elsewhere)


def _read(loaded: LoadedConfig) -> _Sample:
    """Read the newest records of all partitions, as far as there is time."""
    settings = loaded.source
    if getattr(settings, "control_topic", None) is not None:
        settings = settings.model_copy(update={"control_topic": None})
    if str(getattr(settings, "path", "")) == "-":
        return _Sample()
    options = SourceOptions(True, loaded.config.limits.max_batch_bytes)
    sample = _Sample()
    with closing(loaded.source_connector.open_log(settings, options)) as log:
        sample.log = ClickLog.of(log)
        wanted: set[int] = set()
        deadline = time.monotonic() + READ_SECONDS
        started = False
        while (not started or wanted) and time.monotonic() < deadline:
            poll = log.poll(POLL_SECONDS)
            for partition in poll.gained[:MAX_PARTITIONS]:
                started = True
                start = log.seek(partition, None)
                end = start + log.lags([partition]).get(partition, 0)
                behind = log.stable_offset_lags([partition]).get(partition, 0)
                log.seek(partition, max(start, end - behind - NEWEST))
                wanted.add(partition)
                sample.begin[partition], sample.next[partition] = start, end
                deadline = time.monotonic() + READ_SECONDS
            for partition, records in poll.records.items():
                kept = [*sample.records.get(partition, []), *records]
                sample.records[partition] = kept[-NEWEST:]
            for partition in [it for it in wanted if log.caught_up(it)]:
                wanted.discard(partition)
                sample.complete.add(partition)
        sample.in_time = started and not wanted
    for partition, found in sample.records.items():
        if found:
            sample.next[partition] = max(sample.next.get(partition, 0), found[-1].offset + 1)
    return sample


def _unread(error: StreamduelError) -> Finding:
    """The finding about snapshots that cannot be read."""
    if _is_created_by_run(error):
        return Finding("snapshots", "fine", NO_SNAPSHOTS)
    # If they are missing, the connector has a finding already.
    return Finding(
        "snapshots", "warning" if isinstance(error, MissingError) else "failed", str(error)
    )


def _is_created_by_run(error: StreamduelError) -> bool:
    """Whether something is missing that `streamduel run` creates; the connector says so."""
    return isinstance(error, MissingError) and error.created_by_run


def _snapshots(
    loaded: LoadedConfig, sample: _Sample, saved: dict[int, snapshot_reading.Saved]
) -> Iterator[Finding]:
    """Whether the newest snapshots can be restored, and how far they are behind."""
    try:
        opened = loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)
        with closing(opened) as archive:
            for _, each in snapshot_reading.newest(archive):
                entry, experiments, place = each
                partition = entry.partition
                if sample.log is not None:
                    continuity.check_log(entry, sample.log, partition)
                    end = sample.next.get(partition, entry.next)
                    if partition in sample.complete and end < entry.next:
                        raise SnapshotError(
                            continuity.cut_off(sample.log, partition, end, entry.next)
                        )
                continuity.check_format(entry, loaded.config.log_format)
                control_order.check_topic(entry.control, loaded.config.control_topic)
                for name, experiment in experiments.items():
                    with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, place):
                        saved_state.check(name, experiment.state)
                        continuity.in_force(experiment)
                saved[partition] = each
    except StreamduelError as error:
        yield _unread(error)
        return
    if not saved:
        yield Finding("snapshots", "fine", NO_SNAPSHOTS)
        return
    yield from _behind(sample, saved)
    yield from _differences(loaded, saved)


def _behind(sample: _Sample, saved: Mapping[int, snapshot_reading.Saved]) -> Iterator[Finding]:
    """How far intact snapshots are behind the click log, and what it has deleted since."""
    waiting = deleted = 0
    for partition, each in saved.items():
        following = each.partition.next
        start = max(sample.begin.get(partition, following), following)
        deleted += start - following
        waiting += max(0, sample.next.get(partition, start) - start)
    lag = f"{counted(waiting, 'record')} of the click log {'is' if waiting == 1 else 'are'}"
    behind = f"; {lag} not in them" if waiting else ""
    partitions = counted(len(saved), "partition")
    yield Finding("snapshots", "fine", f"those of {partitions} are intact{behind}.")
    if deleted:
        yield Finding(
            "deleted records", "warning",
            f"the click log has deleted {counted(deleted, 'record')} that are not in the "
            "snapshots; `streamduel run` continues after them. Set its retention longer than the "
            "service may be down.",
        )  # fmt: skip


def _differences(
    loaded: LoadedConfig, saved: Mapping[int, snapshot_reading.Saved]
) -> Iterator[Finding]:
    found: list[Difference] = []
    for each in saved.values():
        for name, entry in each.experiments.items():
            configured = loaded.config.experiments.get(name)
            if configured is None:
                continue
            if entry.ended_at is not None:
                yield Finding(
                    "experiments", "warning",
                    f"'{name}' was not configured from offset {entry.ended_at} of partition "
                    f"{each.partition.partition} on; `streamduel run` continues with it.",
                )  # fmt: skip
            running = continuity.in_force(entry)
            found += differences(running, entry.state["arms"], configured)
    ways = {
        False: f"`streamduel control apply {loaded.path}` shows and applies it",
        True: "it cannot change while they run; use a new experiment name",
    }
    for fixed, way in ways.items():
        if keys := sorted({it.key for it in found if it.fixed == fixed}):
            sentence = (
                f"running experiments differ from the configuration in {', '.join(keys)}, and run "
                f"on as recorded; {way}."
            )
            yield Finding("settings", "warning", sentence)


def _records(
    loaded: LoadedConfig, sample: _Sample, saved: Mapping[int, snapshot_reading.Saved]
) -> Iterator[Finding]:
    """Whether the newest records would count, and why not."""
    total = sum(map(len, sample.records.values()))
    if total == 0 and not sample.in_time:
        yield Finding(
            "records", "unknown",
            f"none came within {READ_SECONDS:.0f} s; is a broker, or the network, slow?",
        )  # fmt: skip
        return
    if total == 0:
        yield Finding(
            "records", "warning",
            "the click log has no records; do the ranker services write to it? Their topic or "
            "file must be the source of this configuration.",
        )  # fmt: skip
        return
    counts = _fold_each(loaded, sample, saved)
    refused = len(counts.letters)
    good = total - refused - counts.outcomes.total()
    verdict: Grade = "fine" if not refused else "warning" if good else "failed"
    others = "".join(
        f", {counted(count, what) if what == 'duplicate' else f'{count:,} {what}'}"
        for what, count in counts.outcomes.items()
        if count
    )
    yield Finding(
        "records", verdict,
        f"among the newest {counted(total, 'record')}: {good:,} valid, "
        f"{counted(refused, 'dead letter')}{others}.",
    )  # fmt: skip
    yield from _refusals(counts.letters)
    silent = [name for name in loaded.config.experiments if not counts.seen[name]]
    if silent and len(silent) < len(loaded.config.experiments):
        named = ", ".join(f"'{name}'" for name in silent[:10]) + (", …" if silent[10:] else "")
        yield Finding("experiments", "warning", f"none of them belongs to {named}.")


def _fold_each(
    loaded: LoadedConfig, sample: _Sample, saved: Mapping[int, snapshot_reading.Saved]
) -> _Counts:
    """Fold the newest records of each partition, after its snapshot."""
    assert sample.log is not None
    counts = _Counts()
    for partition, records in sorted(sample.records.items()):
        decoder = _decoder(loaded)
        following = saved[partition].partition.next if partition in saved else 0
        kept = [it for it in records if not _is_left_out(decoder, it, following)]
        task = open_task(loaded, sample.log, partition, saved.get(partition), records[0].offset)
        fold(task, kept, saved.get(partition))
        commit = task.take_commit()
        counts.letters += [
            it.content for it in commit.dead_letters if isinstance(it.content, DeadLetter)
        ]
        counts.outcomes["ignored"] += sum(task.ignored.values())
        for name, experiment in task.experiments.items():
            for outcome in ("duplicate", "capped"):
                counts.outcomes[outcome] += experiment.tallies[outcome]
            counts.seen[name] += sum(experiment.tallies.values()) + experiment.open["clicks"]
    return counts


def _refusals(letters: Iterable[DeadLetter]) -> Iterator[Finding]:
    """The most frequent reasons, each with an example."""
    by_error: dict[tuple[str, str], list[DeadLetter]] = {}
    for letter in letters:
        by_error.setdefault((letter.reason, letter.error), []).append(letter)
    most = sorted(by_error.items(), key=lambda item: -len(item[1]))
    for (why, sentence), same in most[:MAX_SENTENCES]:
        last = same[-1]
        yield Finding(
            f"dead letters: {why}", "warning",
            f"{len(same):,} of them, the last at offset {last.offset} of partition "
            f"{last.partition}: {shortened(sentence, 400)}",
        )  # fmt: skip
    if len(most) > MAX_SENTENCES:
        rest = sum(len(same) for _, same in most[MAX_SENTENCES:])
        yield Finding("dead letters", "warning", f"{rest:,} more, for other reasons.")


def _decoder(loaded: LoadedConfig) -> RecordDecoder:
    limits, form = loaded.config.limits, loaded.config.log_format
    translate = None if form is None else form.translate
    return RecordDecoder(limits.max_record_bytes, translate, limits.max_ranks)


def _is_left_out(decoder: RecordDecoder, record: LogRecord, following: int) -> bool:
    """Whether a record about control is not folded.

    It may have taken effect already, before the next offset of the snapshot; or the settings that
    it applies may fit only to others that `open_task` leaves out.
    """
    value: Any = record.value
    if isinstance(value, bytes) and b'"control_marker"' in value:
        return True
    try:
        actions = {it.action for it in decoder.events(value) if isinstance(it, Control)}
    except (Rejected, Ignored):
        return False
    return bool(actions) and (record.offset < following or "apply" in actions)


def _clock(loaded: LoadedConfig, sample: _Sample, now: float) -> Iterator[Finding]:
    """Whether the newest timestamps fit the clock of this machine."""
    decoder = _decoder(loaded)
    times = [
        stamp
        for records in sample.records.values()
        for record in records
        if (stamp := _time(decoder, record)) is not None
    ]
    if not times:
        if any(sample.records.values()):
            found = "no record has a timestamp; deadlines, join windows and renewals need them."
            yield Finding("clocks", "warning", found)
        return
    ahead = max(times) - int(1000 * now)
    most = loaded.config.time.max_advance_ms
    if ahead > most:
        yield Finding(
            "clocks", "warning",
            f"the newest timestamp is {_span(ahead)} ahead of this machine's clock; correct the "
            f"clock of the broker, of the producers, or of this machine.",
        )  # fmt: skip
    elif -ahead > QUIET_MS:
        found = f"the newest record is {_span(-ahead)} old: does anything write at present?"
        yield Finding("clocks", "warning", found)
    else:
        yield Finding("clocks", "fine", f"the newest record is {_span(abs(ahead))} old.")


def _time(decoder: RecordDecoder, record: LogRecord) -> int | None:
    if record.timestamp is not None:
        return record.timestamp
    try:
        return max(
            (it.ts for it in decoder.events(record.value) if it.ts is not None), default=None
        )
    except (Rejected, Ignored):
        return None


def _span(milliseconds: int) -> str:
    """A span of time for people.

    >>> _span(1500), _span(5_400_000), _span(200_000_000)
    ('2 s', '1.5 h', '2.3 days')
    """
    seconds = milliseconds / 1000
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _elsewhere(loaded: LoadedConfig, elsewhere: Mapping[str, Iterable[bytes]]) -> Iterator[Finding]:
    """Whether records of a configured experiment are in another click log."""
    decoder = _decoder(loaded)
    for topic, values in sorted(elsewhere.items()):
        for value in values:
            try:
                names = {event.experiment for event in decoder.events(value)}
            except (Rejected, Ignored):
                continue
            if mine := sorted(names.intersection(loaded.config.experiments)):
                yield Finding(
                    "other topics", "warning",
                    f"'{topic}' has records of experiment '{mine[0]}', which this configuration "
                    f"does not read: does a service write to the wrong topic?",
                )  # fmt: skip
                break
