"""Seeded damage to snapshots: `python -m tests.unit.stream.snapshot_mutations [COUNT] [SEED]`.

Each mutation damages a snapshot as Kafka or a file stores it. It must be refused with a
SnapshotError of one line, or leave what is restored as it was; no other exception, and within a
time bound.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from kafka import TopicPartition

from streamduel.checksum import seal
from streamduel.connector import Snapshot
from streamduel.errors import SnapshotError
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot_reading import check_offset
from streamduel.stream.snapshot_reading import read as read_entries
from streamduel.stream.task import PartitionTask
from streamduel_files.outlet import PartitionSnapshot, SnapshotFile, decode_snapshot
from streamduel_kafka.archive import NEXT_OFFSET, assemble
from tests.unit.stream.folding import CONTROL, DUEL, DUELS, INTERLEAVING, Partition, config, text
from tests.unit.stream.sealing import changed

SECONDS: Final = 1.0
"""Processor time that one snapshot of some kilobytes may take, a thousand times the usual one."""

LOG = ClickLog("clicks", 2, lambda experiment: 0)
AT = TopicPartition("state", 0)
PATH = Path("state/snapshot.json")

Records = dict[bytes, bytes]


def stored(duels: int) -> Records:
    """The records of a snapshots' topic, by key."""
    partition = Partition()
    partition.fold(
        text(DUELS, id="many"),
        text(INTERLEAVING, id="list"),
        text(CONTROL, action="add_arm", arm="late"),
        *(text(DUEL, id=str(number)) for number in range(duels)),
    )
    entries = {name.encode(): entry for name, entry in partition.entries.items()}
    return {**entries, NEXT_OFFSET: str(partition.task.next_offset).encode()}


NEWER, OLDER = stored(9), stored(5)


def flip(rng: random.Random, value: bytes) -> bytes:
    """Change some bits."""
    damaged = bytearray(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 10])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut(rng: random.Random, value: bytes) -> bytes:
    """Lose the end or a middle part."""
    begin = rng.randrange(len(value))
    return value[:begin] + value[begin + rng.randrange(1, len(value) + 1) :]


def insert(rng: random.Random, value: bytes) -> bytes:
    """Gain some bytes."""
    begin = rng.randrange(len(value) + 1)
    return value[:begin] + rng.randbytes(rng.randrange(1, 9)) + value[begin:]


def digit(rng: random.Random, value: bytes) -> bytes:
    """Change a digit, so that the text stays JSON."""
    places = [place for place, byte in enumerate(value) if 48 <= byte <= 57]
    if not places:
        return flip(rng, value)
    damaged = bytearray(value)
    damaged[rng.choice(places)] = rng.choice(b"0123456789")
    return bytes(damaged)


def part(rng: random.Random, value: bytes) -> bytes:
    """Overwrite a part with another part, or with zeros."""
    length = rng.randrange(1, max(2, len(value) // 2))
    to, of = (rng.randrange(len(value)) for _ in range(2))
    piece = value[of : of + length] if rng.random() < 0.5 else bytes(length)
    return value[:to] + piece + value[to + len(piece) :]


BYTES: Final[list[Callable[[random.Random, bytes], bytes]]] = [flip, cut, insert, digit, part]


def damage(rng: random.Random) -> tuple[str, Records]:
    """A kind of damage, and a damaged snapshot."""
    records, key = dict(NEWER), rng.choice(sorted(NEWER))
    chance = rng.random()
    if chance < 0.7:
        change = rng.choice(BYTES)
        records[key] = change(rng, records[key])
        return change.__name__, records
    if chance < 0.76:
        del records[key]
        return "delete", records
    if chance < 0.82:
        other = rng.choice(sorted(NEWER))
        records[key], records[other] = records[other], records[key]
        return "swap", records
    if chance < 0.9:
        for each in rng.sample(sorted(NEWER), rng.randrange(1, len(NEWER))):
            records[each] = OLDER[each]
        return "older", records
    records[rng.choice(BYTES)(rng, key)] = records.pop(key)
    return "key", records


def restore(records: Records) -> object:
    """What is restored, from the records of a topic."""
    found = assemble(records, AT)
    assert found is not None
    saved = read_entries(found.entries, 0, found.place)
    check_offset(found, saved.partition.next)
    return saved


def restore_file(records: Records, rng: random.Random) -> object:
    """What is restored, from a file that is damaged."""
    entries = {k.decode(): msgspec.Raw(v) for k, v in records.items() if k != NEXT_OFFSET}
    content = SnapshotFile({"a": 5}, {0: PartitionSnapshot(int(records[NEXT_OFFSET]), entries)})
    found = decode_snapshot(rng.choice(BYTES)(rng, seal(msgspec.json.encode(content))), PATH)
    loaded = found.load(0, PATH)
    assert loaded is not None
    saved = read_entries(loaded.entries, 0, "")
    return found.outputs, saved.partition, saved.experiments


def impossible(rng: random.Random) -> dict[str, bytes]:
    """Entries with right checksums, of which one has a content that was never written."""
    entries = {key.decode(): value for key, value in NEWER.items() if key != NEXT_OFFSET}
    name = rng.choice(["experiment/search", "experiment/search", "experiment/ads", "partition"])

    def change(content: dict[str, Any]) -> None:
        node: Any = content
        while True:
            places = list(node) if isinstance(node, dict) else list(range(len(node)))
            place = rng.choice(places)
            inner = node[place]
            if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
                break
            node = inner
        odd = [None, -1, 0, 2**70, 0.5, "x", "", [], {}, True, [[1]], {"a": 1}, [None], 1e300]
        if rng.random() < 0.2:
            del node[place]
        else:
            node[place] = rng.choice(odd)

    return changed(entries, name, change)


def check(number: int, seed: int) -> str:
    """One mutation; returns its kind and what happened.

    Raises:
        AssertionError: it was accepted, or took too long.
    """
    rng = random.Random(f"{seed} {number}")
    began = time.thread_time()
    chance = rng.random()
    try:
        if chance < 0.85:
            kind, records = damage(rng)
            found = restore(records)
            # A whole older snapshot is one: Kafka's committed offset tells, see SnapshotLoader.
            assert found in (INTACT, WHOLE_OLDER), (
                f"{kind}: mutation {number} of seed {seed} was accepted"
            )
        elif chance < 0.98:
            kind = "file"
            found = restore_file(NEWER, rng)
            assert found == INTACT_FILE, f"file: {number} of seed {seed} accepted"
        else:
            kind = "content"
            PartitionTask(config(), LOG, 0, impossible(rng)).begin(12)
        outcome = "as before"
    except SnapshotError as error:
        outcome = "two lines" if "\n" in str(error) else "refused"
    assert outcome != "two lines"
    taken = time.thread_time() - began
    assert taken < SECONDS, f"mutation {number} of seed {seed} took {taken:.1f} s"
    return f"{kind}: {outcome}"


def _no_damage() -> tuple[object, object]:
    class Same(random.Random):
        def choice(self, seq: Any) -> Any:
            return lambda rng, value: value

    return restore(NEWER), restore_file(NEWER, Same())


INTACT, INTACT_FILE = _no_damage()
WHOLE_OLDER = restore(OLDER)
assert isinstance(assemble(NEWER, AT), Snapshot)


def run(count: int, seed: int) -> Counter[str]:
    """How often each kind of damage was refused."""
    return Counter(check(number, seed) for number in range(count))


if __name__ == "__main__":
    COUNT, SEED = (int(argument) for argument in (*sys.argv[1:], "10000", "1")[:2])
    BEGAN = time.process_time()
    print(json.dumps(dict(sorted(run(COUNT, SEED).items())), indent=1))
    print(f"{COUNT} mutations of seed {SEED} in {time.process_time() - BEGAN:.0f} s")
