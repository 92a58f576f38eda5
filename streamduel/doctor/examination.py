"""The checks of `streamduel doctor`, in their order."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Final

from streamduel.config import LoadedConfig
from streamduel.config.changes import Difference, differences
from streamduel.diagnosis import CommittedOffset, Finding
from streamduel.doctor.controls import check_controls
from streamduel.doctor.newest_records import Sample, check_records, read_newest
from streamduel.errors import MissingError, SnapshotError, StreamduelError, counted
from streamduel.formats import Ignored
from streamduel.records import Rejected
from streamduel.stream import continuity, control_order, saved_state, snapshot, snapshot_reading
from streamduel.stream.decode import RecordDecoder

QUIET_MS: Final = 3_600_000
"""A newest record that is older than this is worth a warning."""

NO_SNAPSHOTS: Final = (
    "there are none yet; `streamduel run` starts at the beginning of the click log."
)

DELETED: Final = (
    "the snapshots were made from a click log that no longer exists: restore it; or create it, and "
    "continue from its beginning with 'streamduel repair new-log CONFIG'."
)


def examine(loaded: LoadedConfig, now: float | None = None) -> Iterator[Finding]:
    """Check everything that a configuration names; writes nothing, and owns no partition.

    Args:
        loaded: a valid configuration.
        now: seconds since 1970; by default, the present time.
    """
    reported: set[tuple[str, str]] = set()
    with ExitStack() as opened:
        for finding in _findings(loaded, time.time() if now is None else now, opened):
            # A topic that the connector refuses is refused again where it is read.
            refusal = finding.verdict, finding.sentence
            if refusal not in reported:
                reported.add(refusal)
                yield finding


def _findings(loaded: LoadedConfig, now: float, opened: ExitStack) -> Iterator[Finding]:
    diagnosis = loaded.source_connector.diagnose(loaded.source, loaded.sink, loaded.snapshots)
    yield from diagnosis.findings
    if not diagnosis.reachable:
        return
    # Before the end of the click log: a service that runs may commit in between.
    newest, problem = _load(loaded)
    saved: dict[int, snapshot_reading.Saved] = {}
    missing = False
    try:
        sample = read_newest(loaded, opened)
    except StreamduelError as error:
        missing = _is_created_by_run(error)
        if not missing:
            yield Finding("records", "failed", str(error))
        sample = Sample()
    unread = yield from _snapshots(loaded, sample, newest, problem, saved)
    if missing and saved:
        yield Finding("click log", "failed", DELETED)
    if not unread:
        yield from _committed(diagnosis.committed, saved)
    yield from check_controls(loaded, saved)
    if sample.log is not None:
        yield from check_records(loaded, sample, saved)
        yield from _clock(loaded, sample, now)
    yield from _raw_records(loaded)
    yield from _elsewhere(loaded, diagnosis.elsewhere)


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


def _load(
    loaded: LoadedConfig,
) -> tuple[list[snapshot_reading.Saved], StreamduelError | None]:
    """The newest snapshots up to the first that cannot be read, and why it cannot."""
    newest: list[snapshot_reading.Saved] = []
    try:
        with closing(loaded.open_archive()) as archive:
            newest.extend(each for _, each in snapshot_reading.newest(archive))
    except StreamduelError as error:
        return newest, error
    return newest, None


def _snapshots(
    loaded: LoadedConfig,
    sample: Sample,
    newest: Iterable[snapshot_reading.Saved],
    problem: StreamduelError | None,
    saved: dict[int, snapshot_reading.Saved],
) -> Generator[Finding, None, bool]:
    """Whether the newest snapshots can be restored, and how far they are behind.

    Adds those that can to `saved`. Returns whether they could not be read, and not because there
    are none yet.
    """
    try:
        for each in newest:
            _check(loaded, sample, each)
            saved[each.partition.partition] = each
    except StreamduelError as error:
        problem = error
    if problem is not None:
        yield _unread(problem)
        return not _is_created_by_run(problem)
    if not saved:
        yield Finding("snapshots", "fine", NO_SNAPSHOTS)
        return False
    yield from _behind(sample, saved)
    yield from _differences(loaded, saved)
    return False


def _check(loaded: LoadedConfig, sample: Sample, saved: snapshot_reading.Saved) -> None:
    """Refuse a snapshot that `streamduel run` would not continue in this click log."""
    entry, experiments, place = saved
    partition = entry.partition
    if sample.log is not None:
        sample.repartitioned = (
            entry.topic == sample.log.topic and entry.partitions != sample.log.partitions
        )
        continuity.check_log(entry, sample.log, partition)
        end = sample.next.get(partition, entry.next)
        if partition in sample.complete and end < entry.next:
            raise SnapshotError(continuity.cut_off(sample.log, partition, end, entry.next))
    continuity.check_format(entry, loaded.config.log_format)
    control_order.check_topic(entry.control, loaded.config.control_topic)
    for name, experiment in experiments.items():
        with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, place):
            saved_state.check(name, experiment.state)
            continuity.in_force(experiment)


def _committed(
    committed: Mapping[int, CommittedOffset], saved: Mapping[int, snapshot_reading.Saved]
) -> Iterator[Finding]:
    """Whether the source continues where the snapshots do; `streamduel run` refuses anything else.

    A service that runs may have committed more since the offsets were read.
    """
    for partition, found in sorted(committed.items()):
        has = f"the group has committed offset {found.next} of partition {partition}"
        if partition not in saved:
            yield Finding(
                "offsets", "failed",
                f"{has}, which has no snapshot: was the topic of the snapshots emptied, or is the "
                "group another program's? Use a new group to start again.",
            )  # fmt: skip
            return
        following = saved[partition].partition.next
        if found.next > following or (found.next < following and not found.is_own):
            yield Finding(
                "offsets", "failed",
                f"{has}, and its snapshot continues at {following}: were the offsets reset? Set "
                f"this one to {following}.",
            )  # fmt: skip
            return


def _behind(sample: Sample, saved: Mapping[int, snapshot_reading.Saved]) -> Iterator[Finding]:
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


def _clock(loaded: LoadedConfig, sample: Sample, now: float) -> Iterator[Finding]:
    """Whether the newest timestamps fit the clock of this machine."""
    decoder = RecordDecoder.of(loaded.config)
    times = [
        stamp
        for records in sample.records.values()
        for record in records
        if (stamp := decoder.timestamp(record)) is not None
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


def _raw_records(loaded: LoadedConfig) -> Iterator[Finding]:
    """Whether the topic that the Spark job reads can be read."""
    spark = loaded.config.spark
    if spark is None:
        return
    name = "spark.topic"
    try:
        with closing(loaded.open_log(topic=spark.topic, control_topic=None)):
            yield Finding(name, "fine", f"'{spark.topic}' can be read.")
    except MissingError:
        found = f"'{spark.topic}' does not exist; create it, because streamduel never does."
        yield Finding(name, "failed", found)
    except StreamduelError as error:
        yield Finding(name, "failed", str(error).replace("source.topic", name))


def _elsewhere(loaded: LoadedConfig, elsewhere: Mapping[str, Iterable[bytes]]) -> Iterator[Finding]:
    """Whether records of a configured experiment are in another click log."""
    decoder = RecordDecoder.of(loaded.config)
    spark = loaded.config.spark
    for topic, values in sorted(elsewhere.items()):
        if spark is not None and topic == spark.topic:
            continue  # the Spark job reads it
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
