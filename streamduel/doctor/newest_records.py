"""The newest records of the click log, for `streamduel doctor`: would they count, and why not?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any, Final

from streamduel.config import LoadedConfig
from streamduel.connector import POLL_SECONDS, LogRecord, Source
from streamduel.control_markers import marker_in
from streamduel.diagnosis import Finding, Grade
from streamduel.doctor.fold import fold, open_task
from streamduel.errors import counted, listed, shortened
from streamduel.formats import Ignored
from streamduel.records import Control, DeadLetter, Rejected
from streamduel.stream import snapshot_reading
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.routing import ClickLog

NEWEST: Final = 200
"""The newest records of each partition that are read."""

MAX_PARTITIONS: Final = 100
"""The most partitions of which records are read."""

READ_SECONDS: Final = 10.0
"""Timeout of reading all of them, once their offsets are known."""

MAX_SENTENCES: Final = 5
"""Kinds of refused records that are reported, the most frequent first."""


@dataclass
class Sample:
    """The newest records of the click log.

    Attributes:
        records: by partition.
        begin: the first offset of each partition.
        next: the end of each partition.
        complete: the partitions that were read to their end.
        in_time: whether all of them were.
        log: the shape of the click log, while its source is open.
        repartitioned: whether the snapshots are of another number of its partitions.
    """

    records: dict[int, list[LogRecord]] = field(default_factory=dict)
    begin: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    in_time: bool = True
    log: ClickLog | None = None
    repartitioned: bool = False


def read_newest(loaded: LoadedConfig, opened: ExitStack) -> Sample:
    """Read the newest records of all partitions, as far as there is time.

    Args:
        loaded: the configuration.
        opened: closes the source of the click log, which `Sample.log` asks.
    """
    if loaded.read_once:
        return Sample()
    without = {} if loaded.config.control_topic is None else {"control_topic": None}
    log = opened.enter_context(closing(loaded.open_log(**without)))
    sample = Sample(log=ClickLog.of(log))
    _read(log, sample)
    return sample


def _read(log: Source, sample: Sample) -> None:
    """Add the newest records."""
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


@dataclass
class _Counts:
    """What the newest records of all partitions would do.

    Attributes:
        letters: the dead letters.
        outcomes: records that are neither dead letters nor valid, by outcome.
        left_out: control records that are not folded, so nobody knows.
        earlier: records that are not folded because a repair moved the state after them.
        seen: records of each experiment.
        unread: records between the snapshots and the newest records, which are not folded.
    """

    letters: list[DeadLetter] = field(default_factory=list)
    outcomes: Counter[str] = field(
        default_factory=lambda: Counter(duplicate=0, capped=0, ignored=0)
    )
    left_out: int = 0
    earlier: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    unread: int = 0


def check_records(
    loaded: LoadedConfig, sample: Sample, saved: Mapping[int, snapshot_reading.Saved]
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
    good = total - refused - counts.outcomes.total() - counts.left_out - counts.earlier
    verdict: Grade = "fine" if not refused else "warning" if good else "failed"
    others = "".join(
        f", {counted(count, what) if what == 'duplicate' else f'{count:,} {what}'}"
        for what, count in counts.outcomes.items()
        if count
    )
    if counts.left_out:
        others += f", {counted(counts.left_out, 'control record')} not checked"
    if counts.earlier:
        others += f", {counted(counts.earlier, 'record')} from before a repair not checked"
    yield Finding(
        "records", verdict,
        f"among the newest {counted(total, 'record')}: {good:,} valid, "
        f"{counted(refused, 'dead letter')}{others}.",
    )  # fmt: skip
    yield from _refusals(counts.letters, counts.unread)
    silent = [name for name in loaded.config.experiments if not counts.seen[name]]
    moved = counts.earlier or sample.repartitioned
    if silent and len(silent) < len(loaded.config.experiments) and not moved:
        named = listed(silent, "'")
        yield Finding("experiments", "warning", f"none of them belongs to {named}.")


def _fold_each(
    loaded: LoadedConfig, sample: Sample, saved: Mapping[int, snapshot_reading.Saved]
) -> _Counts:
    """Fold the newest records of each partition, after its snapshot."""
    assert sample.log is not None
    counts = _Counts()
    for partition, newest in sorted(sample.records.items()):
        begin = _moved_at(saved.get(partition))
        records = [it for it in newest if it.offset >= begin]
        counts.earlier += len(newest) - len(records)
        if not records:
            continue
        decoder = RecordDecoder.of(loaded.config)
        following = saved[partition].partition.next if partition in saved else 0
        counts.unread += max(0, records[0].offset - max(following, sample.begin[partition]))
        kept = [it for it in records if not _is_left_out(decoder, it, following)]
        counts.left_out += len(records) - len(kept)
        task = open_task(loaded, sample.log, partition, saved.get(partition), records[0].offset)
        counts.outcomes.update(fold(task, kept, saved.get(partition)))
        commit = task.take_commit()
        letters = [it.content for it in commit.dead_letters if isinstance(it.content, DeadLetter)]
        if sample.repartitioned:
            others = [it for it in letters if it.reason != "wrong_partition"]
            counts.outcomes["for the former number of partitions"] += len(letters) - len(others)
            letters = others
        counts.letters += letters
        counts.outcomes["ignored"] += sum(task.ignored.values())
        for name, experiment in task.experiments.items():
            counts.seen[name] += sum(experiment.tallies.values()) + experiment.open["clicks"]
    return counts


def _moved_at(saved: snapshot_reading.Saved | None) -> int:
    """The offset at which the state continues since it was moved to this click log.

    Records before it were folded with other homes of experiments, or were not folded.
    """
    repairs = saved.partition.repairs if saved else []
    return max((it.at for it in repairs if it.action in {"new_log", "repartition"}), default=0)


def _refusals(letters: Iterable[DeadLetter], unread: int) -> Iterator[Finding]:
    """The most frequent reasons, each with an example."""
    added = (
        f" A control record among {counted(unread, 'earlier record')} that the service has not "
        "read yet may add the arm."
    )
    by_error: dict[tuple[str, str], list[DeadLetter]] = {}
    for letter in letters:
        by_error.setdefault((letter.reason, letter.error), []).append(letter)
    most = sorted(by_error.items(), key=lambda item: -len(item[1]))
    for (why, sentence), same in most[:MAX_SENTENCES]:
        last = same[-1]
        yield Finding(
            f"dead letters: {why}", "warning",
            f"{len(same):,} of them, the last at offset {last.offset} of partition "
            f"{last.partition}: {shortened(sentence, 400)}"
            f"{added if why == 'unknown_arm' and unread else ''}",
        )  # fmt: skip
    if len(most) > MAX_SENTENCES:
        rest = sum(len(same) for _, same in most[MAX_SENTENCES:])
        yield Finding("dead letters", "warning", f"{rest:,} more, for other reasons.")


def _is_left_out(decoder: RecordDecoder, record: LogRecord, following: int) -> bool:
    """Whether a record about control is not folded.

    It may have taken effect already, before the next offset of the snapshot; or the settings that
    it applies may fit only to others that `open_task` leaves out.
    """
    if marker_in(record) is not None:
        return True
    value: Any = record.value
    try:
        actions = {it.action for it in decoder.events(value) if isinstance(it, Control)}
    except (Rejected, Ignored):
        return False
    return bool(actions) and (record.offset < following or "apply" in actions)
