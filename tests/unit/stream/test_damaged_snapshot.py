"""A damaged snapshot is refused with a sentence, and never restored."""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from streamduel.connector import Snapshot
from streamduel.errors import SnapshotError
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import READABLE, UNSEALED
from streamduel.stream.snapshot_reading import check_offset, read
from streamduel.stream.task import PartitionTask
from tests.unit.stream.folding import DUEL, Partition, config, text
from tests.unit.stream.sealing import Change, altered, changed

LOG = ClickLog("clicks", 2, lambda experiment: 0)
NAMES = ["partition", "experiments", "experiment/ads", "experiment/search"]
PLACE = "partition 0 of snapshots.topic 'state'"


@pytest.fixture
def older() -> dict[str, bytes]:
    """The snapshot of a partition with one duel."""
    return folded(1)


@pytest.fixture
def entries() -> dict[str, bytes]:
    """The snapshot of a partition with two duels."""
    return folded(2)


def folded(duels: int) -> dict[str, bytes]:
    partition = Partition()
    partition.fold(*(text(DUEL, id=str(number)) for number in range(duels)))
    return partition.entries


def refusal(entries: dict[str, bytes]) -> str:
    with pytest.raises(SnapshotError) as refused:
        PartitionTask(config(), LOG, 0, entries, PLACE)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 800
    return sentence


def test_an_intact_snapshot_is_restored(entries: dict[str, bytes]) -> None:
    assert sorted(entries) == sorted(NAMES)
    assert PartitionTask(config(), LOG, 0, entries).next_offset == 2


def test_a_snapshot_without_entries_is_not_a_new_partition() -> None:
    assert "the entry 'partition' of partition 0" in refusal({})


def test_a_snapshot_of_another_partition_is_refused(entries: dict[str, bytes]) -> None:
    with pytest.raises(SnapshotError, match=r"the entry 'partition' of .* is that of partition 0"):
        read(entries, 1)


def test_the_sentence_names_the_place_and_the_way_on(entries: dict[str, bytes]) -> None:
    entries["experiment/search"] = entries["experiment/search"].replace(b"ltr", b"LTR")
    assert refusal(entries) == (
        "the entry 'experiment/search' of partition 0 of snapshots.topic 'state' has a wrong "
        "checksum; restore the snapshots from a backup, or start over with new snapshots (on Kafka "
        "also with a new group): the click log is then folded again from its beginning, with the "
        "same result if it is complete and the configuration is the first one."
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"\xff", b"null", b"[" * 100_000])
def test_a_damaged_entry_is_refused_by_name(
    entries: dict[str, bytes], name: str, damage: bytes
) -> None:
    entries[name] = damage
    assert f"the entry '{name}' of {PLACE} " in refusal(entries)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_entry_is_refused_by_name(entries: dict[str, bytes], name: str) -> None:
    """A tombstoned experiment must not restart with epoch 1, which readers ignore."""
    del entries[name]
    assert refusal(entries).startswith(f"the entry '{name}' of {PLACE} is missing; ")


@pytest.mark.parametrize("name", NAMES)
def test_an_older_entry_is_refused(
    entries: dict[str, bytes], older: dict[str, bytes], name: str
) -> None:
    if entries[name] == older[name]:
        return
    entries[name] = older[name]
    assert "was written with other entries than those found" in refusal(entries)


def test_a_strange_entry_is_refused(entries: dict[str, bytes]) -> None:
    assert "experiment/other" in refusal({**entries, "experiment/other": b"{}"})
    assert "'comment'" in refusal({**entries, "comment": b"{}"})
    assert r"'a\nb'" in refusal({**entries, "a\nb": b"{}"})
    assert "'origin/partition' of partition 0 of snapshots.topic 'state' has a wrong" in refusal(
        {**entries, "origin/partition": b"{}"}
    )
    twice = {**entries, "experiment/other": entries["experiment/search"]}
    assert "is that of experiment 'search'" in refusal(twice)


@pytest.mark.parametrize("name", ["", "comment", "other/partition"])
def test_what_streamduel_never_writes_can_be_removed(entries: dict[str, bytes], name: str) -> None:
    assert refusal({**entries, name: b"x"}) == (
        f"the entry '{name}' of {PLACE} was not written by streamduel: find the program that "
        "writes there; on Kafka, a record with this key and a null value removes the entry."
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_byte_is_refused(entries: dict[str, bytes], name: str) -> None:
    whole = entries[name]
    for place in range(0, len(whole), 7):
        for mask in (1, 128):
            damaged = bytearray(whole)
            damaged[place] ^= mask
            assert f"'{name}'" in refusal({**entries, name: bytes(damaged)})


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_is_refused(entries: dict[str, bytes], name: str) -> None:
    for length in range(0, len(entries[name]), 11):
        assert f"'{name}'" in refusal({**entries, name: entries[name][:length]})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [READABLE[0] - 1, READABLE[-1] + 1, 70])
def test_another_format_is_refused(entries: dict[str, bytes], name: str, number: int) -> None:
    entries[name] = altered(entries[name], lambda entry: entry.update(format=number))
    assert refusal(entries) == (
        f"the entry '{name}' of {PLACE} has format {number}; this release reads formats "
        f"{READABLE[0]} to {READABLE[-1]}: use one that reads format {number}."
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_checksum_is_refused(entries: dict[str, bytes], name: str) -> None:
    """Only `UNSEALED` has none."""
    without = json.loads(entries[name])
    del without["checksum"]
    assert "has a wrong checksum" in refusal({**entries, name: json.dumps(without).encode()})
    without["format"] = UNSEALED
    assert refusal({**entries, name: json.dumps(without).encode()})


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_field_is_of_a_later_release(entries: dict[str, bytes], name: str) -> None:
    """After a rollback the state is intact: nothing advises to give it up."""
    entries[name] = altered(entries[name], lambda entry: entry.update(held=0))
    assert refusal(entries) == (
        f"the entry '{name}' of {PLACE} was written by a later release (Object contains unknown "
        f"field `held`); use that one, or a later one."
    )


@pytest.mark.parametrize("path", ["settings", "state.policy", "state.policy.counts", "state.stop"])
def test_an_unknown_part_may_be_of_a_later_release(entries: dict[str, bytes], path: str) -> None:
    def add(entry: dict[str, Any]) -> None:
        reduce(getitem, path.split("."), entry)["held"] = 0

    assert (
        "; if a later release wrote it, use that one, or a later one; else restore the snapshots "
    ) in refusal(changed(entries, "experiment/search", add))


def set_state(**parts: Any) -> Change:
    return lambda entry: entry["state"].update(parts)


IMPOSSIBLE: list[Change] = [
    lambda entry: entry.update(state={}),
    lambda entry: entry.update(settings={}),
    lambda entry: entry["settings"].update(arms=3),
    lambda entry: entry["settings"].update(arms=["x", "y", "z"]),
    lambda entry: entry["state"]["policy"].update(policy="nobody"),
    lambda entry: entry["state"]["policy"].update(n_arms=10**12),
    lambda entry: entry["state"]["policy"].update(own={"x": 1}),
    lambda entry: entry["state"]["policy"]["counts"].update(wins=[[1]]),
    lambda entry: entry["state"]["policy"].update(counts=None),
    lambda entry: entry["state"]["policy"].update(generator={}),
    lambda entry: entry["state"]["policy"].update(priority=[0, 0, 0]),
    lambda entry: entry["state"]["plan"].update(champion="nobody"),
    lambda entry: entry["state"]["plan"].update(pairs=[]),
    lambda entry: entry["state"]["assignment"].update(epoch=-1),
    lambda entry: entry["state"]["by_arm"].update(alone=[0]),
    lambda entry: entry["state"]["tallies"].update(accepted=-1),
    set_state(arms=["bm25", "bm25", "ltr-v2"]),
    set_state(arms=["bm25"]),
    set_state(arms=None),
    set_state(stop={}),
    set_state(stop={"check_at": 0, "more": 1}),
    set_state(batch=None),
    set_state(renewal=[]),
    set_state(guardrails={"frozen": ["x", "y"], "served": []}),
    set_state(trust=None),
    set_state(trust={"sides": [1], "arms": {}, "unassigned": 0, "assigned": [], "pruned_at": 0}),
    set_state(ties="many"),
    set_state(pair_ties=[[0, 1, 0]]),
    set_state(pair_ties=[[1, 0, 3]]),
    set_state(pair_ties=[[0, 2, 1], [0, 1, 1]]),
    set_state(pair_ties=[[0, 3, 1]]),
]


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_an_impossible_state_is_refused(entries: dict[str, bytes], change: Change) -> None:
    sentence = refusal(changed(entries, "experiment/search", change))
    assert "experiment/search" in sentence or "experiments.search" in sentence


@pytest.mark.parametrize(
    "change",
    [
        {"next": -1}, {"next": "many"}, {"window": [5, 0]}, {"window": [-1, 0]}, {"open_since": 9},
        {"mark": [3, [0, 0]]}, {"mark": []}, {"stream_time": -1}, {"stream_time": 0.5},
        {"topic": 3}, {"log_format": {}}, {"log_format": 3}, {"dead_letters": {"bad": 1}},
        {"surprise": 1}, {"entries": None}, {"stream_time": 2**70}, {"next": 2**64},
    ],
)  # fmt: skip
def test_an_impossible_partition_is_refused(
    entries: dict[str, bytes], change: dict[str, Any]
) -> None:
    assert refusal(
        {**entries, "partition": altered(entries["partition"], lambda entry: entry.update(change))}
    )


def test_the_offset_of_the_commit_must_be_that_of_the_entries() -> None:
    check_offset(Snapshot(7, {}), 7)
    with pytest.raises(SnapshotError) as refused:
        check_offset(Snapshot(8, {}, PLACE), 7)
    assert str(refused.value) == (
        f"another program wrote to {PLACE}: its next offset is 8, but the commit went to offset 7. "
        f"Stop that program, and write 7 there."
    )
