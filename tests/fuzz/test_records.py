"""Mutated records: each is folded or becomes a dead letter, within its time.

`python -m tests.fuzz.test_records COUNT [SEED]` runs more of them.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

import pytest

from streamduel.config import Config
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from tests.fuzz.mutation import mutants

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
BASE: dict[str, Any] = {"id": "1", "experiment": "search"}
PAIR: dict[str, Any] = {**BASE, "a": "bm25", "b": "ltr-v1"}
OWN: list[dict[str, Any]] = [
    {**PAIR, "type": "duel", "winner": "a", "ts": 1_790_000_000_000},
    {**PAIR, "type": "duels", "wins_a": 3, "wins_b": 2, "ties": 1},
    {**PAIR, "type": "interleaving", "teams": ["a", "b", None, "a"], "clicks": [0, {"rank": 2}],
     "chances": [0.5, 0.25, None, 1.0], "epoch": 3},
    {**PAIR, "type": "impression", "teams": ["a", "b"], "docs": ["d1", "d2"], "client": "c",
     "query": "q", "segment": {"class": "navigational"}},
    {**BASE, "type": "click", "impression": "1", "doc": "d2", "action": "save", "ts": 5},
    {**BASE, "type": "click", "impression": "1", "rank": 1},
    {**BASE, "type": "control", "action": "pause"},
    {**BASE, "type": "control", "action": "add_arm", "arm": "ltr-v3"},
]  # fmt: skip
UBI: list[dict[str, Any]] = [
    {"query_id": "q-1", "user_query": "shoes", "client_id": "c", "timestamp": "2025-01-24T08:31:30",
     "query_response_hit_ids": ["d1", "d2", 3],
     "query_attributes": {"experiment": "search", "a": "bm25", "b": "ltr-v1", "epoch": 3,
                          "teams": ["bm25", "ltr-v1", None]}},
    {"action_name": "click", "query_id": "q-1", "client_id": "c", "timestamp": 1_790_000_000_000,
     "event_attributes": {"object": {"object_id": "d1"}, "position": {"ordinal": 1},
                          "experiment": "search"}},
    {"index": {"_index": "ubi_events"}},
    {"_id": "x", "_source": {"action_name": "click", "query_id": "q-2",
                             "event_attributes": {"object": {"object_id": "d1"}}}},
]  # fmt: skip
SOLR: list[dict[str, Any]] = [
    {"type": "response", "query_id": "q-1", "experiment": "search",
     "docs": [{"id": "d3", "[interleaving]": "bm25"}, {"id": "d1", "[interleaving]": "ltr-v1"}],
     "rq": "{!ltr model=bm25 model=ltr-v1 reRankDocs=25 efi.q='a \\'b' efi.t=\"x=y\"}"},
    {"type": "click", "query_id": "q-1", "experiment": "search", "doc": "d3", "ts": 5, "rank": 0},
]  # fmt: skip
FORMATS: Final[dict[str, tuple[Any, list[dict[str, Any]]]]] = {
    "streamduel": (None, OWN),
    "ubi": ({"name": "ubi", "experiment": "search"}, UBI),
    "ubi by event": ({"name": "ubi", "sides": "events", "pair": ARMS[:2]}, UBI),
    "solr": ({"name": "solr"}, SOLR),
}

SECONDS_PER_BYTE: Final = 5 * 20e-9
"""20 ms per MB, times five for a busy machine."""
SECONDS: Final = 0.01
"""What a record may take whatever its length, such as a decision."""


def task(log_format: Any) -> PartitionTask:
    source = {} if log_format is None else {"format": log_format}
    config = Config.model_validate(
        {"source": source, "sink": {}, "snapshots": {}, "experiments": {"search": {"arms": ARMS}},
         "dedupe": {"window_records": 1000, "window_ms": 1000}}
    )  # fmt: skip
    made = PartitionTask(config, ClickLog("clicks", 1, lambda _name: 0), 0)
    made.begin(0)
    return made


def fold(name: str, seed: int, count: int) -> dict[str, int]:
    """Fold mutants of the records of a format; the numbers of folded records and letters."""
    log_format, records = FORMATS[name]
    made = task(log_format)
    letters = offset = 0
    for value in mutants([json.dumps(it).encode() for it in records], seed, count):
        started = time.process_time()
        made.fold([Record(offset, value, offset)])
        if time.process_time() - started > SECONDS + SECONDS_PER_BYTE * len(value):
            check_time(log_format, value)
        offset += 1
        if offset % 1000 == 0:
            letters += len(made.take_commit().dead_letters)
    return {"records": offset, "letters": letters + len(made.take_commit().dead_letters)}


def check_time(log_format: Any, value: bytes) -> None:
    """Fold a slow record once more: the machine, or a collection of garbage, may have been slow."""
    taken = []
    for _ in range(5):
        made = task(log_format)
        started = time.process_time()
        made.fold([Record(0, value, 0)])
        taken.append(time.process_time() - started)
    allowed = SECONDS + SECONDS_PER_BYTE * len(value)
    assert min(taken) <= allowed, f"{min(taken):.3f} s for {len(value)} bytes: {value[:300]!r}"


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_records_are_folded_or_refused_in_time(name: str) -> None:
    found = fold(name, seed=1, count=3000)
    assert found["records"] == 3000
    assert 0 < found["letters"] < 3000


if __name__ == "__main__":
    for each in FORMATS:
        print(each, fold(each, int(sys.argv[2]) if len(sys.argv) > 2 else 2, int(sys.argv[1])))
