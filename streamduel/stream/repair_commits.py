"""What `streamduel repair` writes: changed snapshot entries, as ordinary commits.

A repair changes a partition only at the next offset of its fold, or later. A replay needs its entry
in `PartitionEntry.repairs`, and the `origin/` entries of a state that was moved to another click
log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final, TypeVar

from msgspec import UNSET, structs

from streamduel.connector import POLL_SECONDS, PartitionCommit, Snapshot, Source
from streamduel.errors import ConfigurationError
from streamduel.stream import control_order, saved_state, snapshot, snapshot_reading
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.dedupe import Mark, WindowStart
from streamduel.stream.repairs import Action, Repair
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import Entries, ExperimentEntry, PartitionEntry
from streamduel.stream.snapshot_reading import Saved
from streamduel.stream.stream_time import ClockState, StreamClock

K = TypeVar("K")

EARLIER = -1
"""Replaces offsets of the former click log: earlier than every record of the present one."""

NEWEST: Final = 101
"""Records whose times are compared: up to 50 of them may have wrong clocks."""

NEWEST_OFFSETS: Final = 500
"""Offsets that are read for them; markers of transactions and unusable records take some."""


def read(found: Snapshot, partition: int) -> Saved:
    """Check and decode a snapshot.

    Raises:
        SnapshotError: it is damaged, or of another format.
    """
    saved = snapshot_reading.read(found.entries, partition, found.place)
    snapshot_reading.check_offset(found, saved.partition.next)
    for name, experiment in saved.experiments.items():
        with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, saved.place):
            saved_state.check(name, experiment.state)
    return saved


def skip(found: Snapshot, partition: int, offset: int, note: str) -> PartitionCommit:
    """Ignore the record at an offset.

    Raises:
        ConfigurationError: it has been folded already, or is skipped already.
        SnapshotError: the snapshot is damaged.
    """
    entry = read(found, partition).partition
    if offset < entry.next:
        raise ConfigurationError(
            f"--offset must be at least {entry.next}, the next record that partition {partition} "
            f"folds (found {offset}); what was folded cannot be undone."
        )
    if any(it.action == "skip" and it.at == offset for it in entry.repairs):
        raise ConfigurationError(f"offset {offset} of partition {partition} is skipped already.")
    return _with(found, entry, [*entry.repairs, Repair("skip", offset, note=note)])


def set_time(found: Snapshot, partition: int, to: int, note: str) -> PartitionCommit:
    """Set the stream time of a partition before its next record.

    Raises:
        SnapshotError: the snapshot is damaged.
    """
    entry = read(found, partition).partition
    others = [it for it in entry.repairs if it.action != "time" or it.done]
    return _with(found, entry, [*others, Repair("time", entry.next, to=to, note=note)])


def _with(found: Snapshot, entry: PartitionEntry, repairs: list[Repair]) -> PartitionCommit:
    if entry.format != snapshot.FORMAT:
        raise ConfigurationError(
            "the snapshot is of an older release; start the service once with this one first."
        )
    changed = structs.replace(entry, repairs=repairs)
    entries = Entries(found.entries).take(changed)
    return PartitionCommit(entry.partition, entry.next, entries=entries)


@dataclass(frozen=True, slots=True)
class Move:
    """The state of some partitions, which continues in another click log.

    Attributes:
        saved: their snapshots.
        log: the click log in which they continue.
        begins: its first offset, by partition.
        action: for the repairs of the partitions.
        note: for the repairs, too.
        new_controls: whether the control topic is another one than before, to be read from its
            beginning.
    """

    saved: Mapping[int, Saved]
    log: ClickLog
    begins: Mapping[int, int]
    action: Action
    note: str
    new_controls: bool = False

    def commits(self) -> list[PartitionCommit]:
        """A commit for each partition of the click log."""
        return [self._commit(partition) for partition in sorted(self.begins)]

    def homes(self) -> dict[str, tuple[int, int]]:
        """The former and the new partition of each experiment."""
        return {
            name: (partition, self.log.home(name))
            for partition, saved in self.saved.items()
            for name in saved.experiments
        }

    def continues(self, partition: int) -> bool:
        """Whether a partition is the same as before, and continues where it was."""
        saved = self.saved.get(partition)
        return (
            self.action == "repartition"
            and saved is not None
            and saved.partition.topic == self.log.topic
            and saved.partition.log_id == self.log.log_id(partition)
        )

    def check_control_topic(self, topic: str | None) -> None:
        """Refuse a control topic whose records would take effect twice, or not at all.

        A partition that continues also continues in its partition of the control topic; one that
        begins again reads its partition of the control topic from the beginning.

        Args:
            topic: the configured control topic; None if there is none.

        Raises:
            ConfigurationError: it must be a new topic, or the one used so far.
        """
        continued = any(self.continues(partition) for partition in self.begins)
        for saved in self.saved.values():
            control = saved.partition.control
            former = None if control is None else control.topic
            if topic is None or former is None:
                continue
            if continued and topic != former:
                raise ConfigurationError(
                    f"source.control_topic must stay '{former}' (found '{topic}'): partitions of "
                    f"'{self.log.topic}' continue, and refer to its records."
                )
            if topic == former and not continued:
                raise ConfigurationError(
                    f"source.control_topic must be a new topic (found '{topic}' again): its "
                    f"records took effect in '{saved.partition.topic}', and would once more in "
                    f"'{self.log.topic}'."
                )

    def _commit(self, partition: int) -> PartitionCommit:
        entry = self._partition(partition)
        origin, entries = Entries(), Entries()
        for former, saved in sorted(self.saved.items()):
            for name, experiment in saved.experiments.items():
                if self.log.home(name) == partition:
                    kept = former == partition and self.continues(partition)
                    found = _kept(experiment) if kept else _moved(experiment, entry.next)
                    origin.put(found)
                    entries.put(found)
        entries.put_origin(origin.take(entry))
        return PartitionCommit(partition, entry.next, entries=entries.take(entry))

    def _ended(self, partition: int) -> list[PartitionEntry]:
        """The former partitions whose counts go on in this new one: the first takes all."""
        if partition != min(it for it in self.begins if not self.continues(it)):
            return []
        return [it.partition for former, it in self.saved.items() if not self.continues(former)]

    def _partition(self, partition: int) -> PartitionEntry:
        common: dict[str, Any] = {
            "topic": self.log.topic,
            "partition": partition,
            "partitions": self.log.partitions,
            "log_id": self.log.log_id(partition),
        }
        if self.continues(partition):
            entry = self.saved[partition].partition
            repair = Repair(self.action, entry.next, note=self.note)
            return structs.replace(entry, **common, repairs=[*entry.repairs, repair])
        begin = self.begins[partition]
        # The latest stream time: what an experiment has dated must not be in the future.
        latest = max(
            (saved.partition for saved in self.saved.values()), key=lambda it: it.stream_time
        )
        own = self.saved.get(partition) if self.action == "new_log" else None
        base = latest if own is None else own.partition
        counted = [own.partition] if own is not None else self._ended(partition)
        start, clock = WindowStart(begin, base.stream_time), _clock(base)
        return structs.replace(
            base,
            **common,
            next=begin,
            window=start,
            open_since=None,
            evicted=UNSET,
            mark=Mark(begin, start),
            clock=clock,
            window_clock=clock,
            resets=[],
            limits=UNSET,
            dead_letters=_sum(it.dead_letters for it in counted),
            ignored=_sum(it.ignored for it in counted),
            repairs=[Repair(self.action, begin, note=self.note)],
            # In other partitions, offsets mean nothing: `check_control_topic` demands a new topic.
            control=control_order.moved(
                base.control, same_controls=own is not None and not self.new_controls
            ),
        )


def _sum(counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    total: Counter[K] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _clock(base: PartitionEntry) -> ClockState | None:
    """The clock at the same stream time, without offsets of the click log before."""
    if base.clock is None or not base.stream_time:
        return base.clock
    clock = StreamClock(0, base.clock)  # the limit is computed again with the next timestamp
    clock.set(base.stream_time)
    return clock.state()


def _kept(saved: ExperimentEntry) -> ExperimentEntry:
    """An experiment that continues where it is; of a removed one, nothing is open in a replay."""
    return saved if saved.ended_at is None else structs.replace(saved, state=_closed(saved.state))


def _closed(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "open": dict.fromkeys(state["open"], 0)}


def _moved(saved: ExperimentEntry, begin: int) -> ExperimentEntry:
    """An experiment that continues in a click log where its former offsets mean nothing."""
    state = {
        **_closed(saved.state),
        "added": dict.fromkeys(saved.state["added"], EARLIER),
        "retired": dict.fromkeys(saved.state["retired"], EARLIER),
    }
    ended_at = None if saved.ended_at is None else begin
    return structs.replace(saved, started_at=begin, ended_at=ended_at, gaps=UNSET, state=state)


def newest_time(log: Source, decoder: RecordDecoder, partition: int, following: int) -> int | None:
    """The median of the newest timestamps of a partition; None if it has none.

    Args:
        log: the click log; its partition has been gained.
        decoder: decodes its records.
        partition: the partition.
        following: an offset of the partition from which its end is found.
    """
    start = log.seek(partition, following)
    end = start + log.lags([partition]).get(partition, 0)
    end -= log.stable_offset_lags([partition]).get(partition, 0)
    log.seek(partition, max(0, end - NEWEST_OFFSETS))
    times: list[int] = []
    while not log.caught_up(partition):
        for record in log.poll(POLL_SECONDS).records.get(partition, ()):
            time = decoder.timestamp(record)
            if time is not None and time > 0:
                times.append(time)
    return median_low(times[-NEWEST:]) if times else None
