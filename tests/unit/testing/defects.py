"""Defects that streamduel once had, or was built not to have: each can be put back for a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from msgspec import structs

from streamduel.connector import Snapshot
from streamduel.control_markers import Marker
from streamduel.policies.base.generator import Generator
from streamduel.stream import repair_commits, snapshot_reading
from streamduel.stream.control_order import ControlOrder
from streamduel.stream.experiment import Experiment
from streamduel.stream.recovery import Recovery
from streamduel.stream.snapshot import PartitionEntry
from streamduel.stream.task import PartitionTask
from streamduel.testing.simulation.cluster import Cluster, NotReady
from streamduel.testing.simulation.controls import SimulatedControls
from streamduel.testing.simulation.instance import (
    RETRY_SECONDS,
    SimulatedOutlet,
    SimulatedSource,
)
from streamduel.testing.simulation.network import Unreachable


def expired_clicks_not_saved(patch: pytest.MonkeyPatch) -> None:
    """Pending clicks that another experiment's record expired did not change the saved state."""
    patch.setattr(Experiment, "version", property(lambda experiment: experiment.records))


def removed_experiment_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Records of an experiment that was removed later were unknown when they were read again."""
    leave_out = Recovery.leave_out

    def forgetting(
        recovery: Recovery, experiment: Experiment, since: int, until: int | None = None
    ) -> None:
        if until is None:
            del recovery._experiments[experiment.name]
        else:
            leave_out(recovery, experiment, since, until)

    patch.setattr(Recovery, "leave_out", forgetting)


def finished_by_a_former_member(patch: pytest.MonkeyPatch) -> None:
    """Offsets were committed with generation -1, which Kafka does not check."""
    add = Cluster.add_offsets

    def unchecked(
        cluster: Cluster, producer: str, epoch: int, member: str, _generation: int,
        *offsets: dict[int, int],
    ) -> None:  # fmt: skip
        add(cluster, producer, epoch, member, -1, *offsets)

    patch.setattr(Cluster, "add_offsets", unchecked)


def offsets_of_a_refused_transaction(patch: pytest.MonkeyPatch) -> None:
    """A producer was used again after an error: it kept the offsets of the refused transaction."""
    add = Cluster.add_offsets
    kept: dict[tuple[Cluster, str], tuple[dict[int, int], dict[int, int]]] = {}

    def keeping(
        cluster: Cluster, producer: str, epoch: int, member: str, generation: int,
        *offsets: dict[int, int],
    ) -> None:  # fmt: skip
        both = kept.setdefault((cluster, producer), ({}, {}))
        for former, present in zip(both, offsets, strict=True):
            former.update(present)
        add(cluster, producer, epoch, member, generation, *map(dict, both))
        del kept[cluster, producer]

    patch.setattr(Cluster, "add_offsets", keeping)


def restored_beside_an_open_transaction(patch: pytest.MonkeyPatch) -> None:
    """The committed offset was read while the former owner's transaction could still change it."""

    def committed(cluster: Cluster, partition: int) -> tuple[int, int] | None:
        if partition not in cluster.offsets:
            return None
        return cluster.offsets[partition], cluster.metadata[partition]

    patch.setattr(Cluster, "committed", committed)


def restored_before_the_marker(patch: pytest.MonkeyPatch) -> None:
    """A snapshot was used without comparing it with the committed offset."""

    def load(outlet: SimulatedOutlet, partition: int) -> Snapshot | None:
        network, cluster = outlet._network, outlet._cluster
        while True:
            try:
                outlet._register()
                return network.request("snapshot", lambda: cluster.snapshot(partition))
            except (Unreachable, NotReady):
                network.sleep(RETRY_SECONDS)

    patch.setattr(SimulatedOutlet, "load", load)


def told_by_the_offset_alone(patch: pytest.MonkeyPatch) -> None:
    """A snapshot was taken for that of a later commit with the same offset."""
    written = Cluster.snapshot_offset

    def newest(cluster: Cluster, partition: int) -> int:
        return cluster.metadata.get(partition, written(cluster, partition))

    patch.setattr(Cluster, "snapshot_offset", newest)


def read_from_the_window_alone(patch: pytest.MonkeyPatch) -> None:
    """Recovery began with the dedupe window, after the first open impression or pending click."""
    entry = PartitionTask._partition_entry

    def late(task: PartitionTask) -> PartitionEntry:
        return structs.replace(entry(task), window=task.window.start)

    patch.setattr(PartitionTask, "_partition_entry", late)


def generator_not_saved(patch: pytest.MonkeyPatch) -> None:
    """A restored policy drew its random numbers from the beginning again."""
    patch.setattr(Generator, "from_state", lambda _state: Generator(0))


def folded_on_after_a_refusal(patch: pytest.MonkeyPatch) -> None:
    """After a refused commit, the partitions were not restored."""
    patch.setattr(SimulatedSource, "reannounce", lambda _source: None)


def damage_accepted(patch: pytest.MonkeyPatch) -> None:
    """Entries of a snapshot had no checksums."""
    patch.setattr(snapshot_reading, "is_intact", lambda _text: True)
    patch.setattr(snapshot_reading, "_check_together", lambda *_: None)


def forwarded_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    """The position in the control topic was not restored: all its records took effect again."""
    patch.setattr(ControlOrder, "restore", lambda _order, _entry, _offset: None)


def dead_letter_before_its_record(patch: pytest.MonkeyPatch) -> None:
    """A marker did not wait for a control record that was written and not read yet."""
    resolve = SimulatedControls._resolve

    def impatient(controls: SimulatedControls, number: int, marker: Marker) -> object:
        found = resolve(controls, number, marker)
        return "unknown" if found == "waits" else found

    patch.setattr(SimulatedControls, "_resolve", impatient)


def repair_lost_by_the_next_commit(patch: pytest.MonkeyPatch) -> None:
    """What an operator had written was not written again with the partition's entry."""
    entry = PartitionTask._partition_entry

    def forgetful(task: PartitionTask) -> PartitionEntry:
        return structs.replace(entry(task), repairs=[])

    patch.setattr(PartitionTask, "_partition_entry", forgetful)


def moved_with_former_offsets(patch: pytest.MonkeyPatch) -> None:
    """State that continued in another click log kept the offsets of the former one."""
    patch.setattr(repair_commits, "_moved", lambda saved, _begin: saved)


DEFECTS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    defect.__name__: defect
    for defect in (
        expired_clicks_not_saved,
        removed_experiment_forgotten,
        finished_by_a_former_member,
        offsets_of_a_refused_transaction,
        restored_beside_an_open_transaction,
        restored_before_the_marker,
        told_by_the_offset_alone,
        read_from_the_window_alone,
        generator_not_saved,
        folded_on_after_a_refusal,
        damage_accepted,
        forwarded_again_after_a_crash,
        dead_letter_before_its_record,
        repair_lost_by_the_next_commit,
        moved_with_former_offsets,
    )
}
