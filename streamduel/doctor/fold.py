"""The fold of the newest records alone, for `streamduel doctor`: which of them count?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import sub

from streamduel.config import LoadedConfig
from streamduel.connector import LogRecord
from streamduel.records import Control
from streamduel.section import MAX_ARMS
from streamduel.stream import continuity, snapshot, snapshot_reading
from streamduel.stream.marked_controls import Controlled
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask


def open_task(
    loaded: LoadedConfig,
    log: ClickLog,
    partition: int,
    saved: snapshot_reading.Saved | None,
    begin: int,
) -> PartitionTask:
    """A task that folds records from an offset on, with the arms that competed there.

    Args:
        loaded: the configuration.
        log: the click log.
        partition: the partition.
        saved: its newest snapshot; None if it has none.
        begin: the offset.
    """
    experiments = dict(loaded.config.experiments)
    for name, entry in _present(saved):
        if name in experiments:
            # Whether a record counts does not depend on the policy.
            retired = [arm for arm, at in entry.state["retired"].items() if at >= begin]
            arms = [*entry.state["arms"], *retired][:MAX_ARMS]
            plain = type(experiments[name])(arms=arms)
            credit = ("ties", "credit", "no_click", "join_window_ms", "max_per_client")
            running = continuity.in_force(entry)
            experiments[name] = plain.model_copy(
                update={key: getattr(running, key) for key in credit}
            )
    task = PartitionTask(
        loaded.config.model_copy(update={"experiments": experiments}), log, partition
    )
    task.open(begin)
    for name in list(task.unstarted):
        task.start(name)
    for name, entry in _present(saved):
        if name in task.experiments:
            roster = task.experiments[name].roster
            for arm, at in entry.state["retired"].items():
                if at < begin:  # known as retired, without a place in the policy
                    roster.add(arm, at - 1)
                    roster.retire(arm, at)
    return task


def fold(
    task: PartitionTask, records: Sequence[LogRecord], saved: snapshot_reading.Saved | None
) -> Counter[str]:
    """Fold records without control records; arms are retired where they were.

    Args:
        task: the task.
        records: from its offset on.
        saved: the newest snapshot; None if there is none.

    Returns:
        The number of records that do not count because each of their events is a duplicate or
        capped, by outcome.
    """
    uncounted: Counter[str] = Counter()
    retired = sorted(
        (at, name, arm)
        for name, entry in _present(saved)
        if name in task.experiments
        for arm, at in entry.state["retired"].items()
        if arm in task.experiments[name].roster.index
    )
    for at, name, arm in retired:
        before = [record for record in records if record.offset < at]
        uncounted += _fold_singly(task, before)
        records = records[len(before) :]
        control = Control(f"{at} {arm}", name, "retire_arm", arm=arm)
        place = Controlled(at, None, name.encode(), None)
        task.experiments[name].apply(control, 0, 0, place, task.stream_time)
    return uncounted + _fold_singly(task, records)


def _fold_singly(task: PartitionTask, records: Sequence[LogRecord]) -> Counter[str]:
    """Fold records one by one: the outcomes of an experiment are those of events."""
    uncounted: Counter[str] = Counter()
    events, duplicate, capped = _outcomes(task)
    for record in records:
        task.fold([record])
        before = events, duplicate, capped
        events, duplicate, capped = _outcomes(task)
        added, repeated, exceeding = map(sub, (events, duplicate, capped), before)
        if added and added == repeated + exceeding:
            uncounted["capped" if exceeding else "duplicate"] += 1
    return uncounted


def _outcomes(task: PartitionTask) -> tuple[int, int, int]:
    """The number of events so far, of duplicates and of capped ones among them."""
    experiments = task.experiments.values()
    return (
        sum(it.records for it in experiments),
        sum(it.outcomes.duplicate for it in experiments),
        sum(it.outcomes.capped for it in experiments),
    )


def _present(
    saved: snapshot_reading.Saved | None,
) -> Iterator[tuple[str, snapshot.ExperimentEntry]]:
    """The experiments of a snapshot that have not ended."""
    for name, entry in (saved.experiments if saved else {}).items():
        if entry.ended_at is None:
            yield name, entry
