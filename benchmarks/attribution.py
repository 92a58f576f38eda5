"""The cost of joining impressions and clicks, compared with finished records.

python benchmarks/attribution.py [--quick]
"""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios, resident_bytes
from benchmarks.records import START, Record, configuration, fresh_task
from benchmarks.report import Goal, Result, alone
from streamduel.config import Config
from streamduel.service import GC_THRESHOLDS

POLL = 5000
"""Records folded at once: as many as in a poll of the Kafka connector."""

WINDOW_MS = 20_000
"""An impression stays open while twenty thousand others are shown."""

METHOD = """\
The same impressions of ten ranks, one per millisecond, every second one with a click: as
`interleaving` records, or as an `impression` and, up to ten seconds later, a `click`. Records in
memory, in batches of 5,000, K = 6, a decision every 100 duels; processor time of the process per
impression; both alternate; median (min–max) of the repetitions, the ratio within each turn. Memory:
growth of the resident set of a new process while the join windows stay open, including the dedupe
window."""


def shown(count: int, docs: bool = False) -> Iterator[dict[str, Any]]:
    """Impressions, without the fields in which the kinds of records differ."""
    luck = random.Random(1)
    for number in range(count):
        first, second = luck.sample(range(6), 2)
        record = {
            "id": f"{luck.getrandbits(128):032x}",
            "experiment": "search",
            "ts": START + number,
            "a": f"ranker-{first}",
            "b": f"ranker-{second}",
            "teams": [luck.choice("ab") for _ in range(10)],
        }
        if docs:
            record["docs"] = [f"document-{luck.getrandbits(32)}" for _ in range(10)]
        yield record


def whole(count: int) -> list[Record]:
    """As finished records."""
    luck = random.Random(2)
    log = []
    for number, record in enumerate(shown(count)):
        clicks = [luck.randrange(10)][: number % 2]
        log.append(_record(number, {**record, "type": "interleaving", "clicks": clicks}))
    return log


def parts(count: int) -> list[Record]:
    """As impressions and clicks, in the order of their times."""
    luck = random.Random(2)
    pieces: list[dict[str, Any]] = []
    for number, record in enumerate(shown(count)):
        rank = luck.randrange(10)
        pieces.append({**record, "type": "impression"})
        if number % 2:
            click = {"type": "click", "id": f"c-{number}", "experiment": "search", "rank": rank}
            later = record["ts"] + luck.randrange(10_000)
            pieces.append({**click, "impression": record["id"], "ts": later})
    pieces.sort(key=lambda piece: int(piece["ts"]))
    return [_record(offset, piece) for offset, piece in enumerate(pieces)]


def _record(offset: int, event: dict[str, Any]) -> Record:
    return Record(offset, event["ts"], b"search", json.dumps(event, separators=(",", ":")).encode())


def _config(**experiment: Any) -> Config:
    limits = {"max_open_bytes": 2**36}  # else impressions beyond it are closed early
    made = configuration(6, 100, dedupe={"window_records": 4_000_000}, limits=limits)
    search = {**made.experiments["search"].model_dump(), **experiment}
    return Config.model_validate({**made.model_dump(), "experiments": {"search": search}})


def fold_seconds(log: Sequence[Record]) -> float:
    """Fold the whole click log."""
    task = fresh_task(_config(join_window_ms=WINDOW_MS))
    batches = [log[start : start + POLL] for start in range(0, len(log), POLL)]
    began = time.process_time()
    for batch in batches:
        task.fold(batch)
    return time.process_time() - began


def bytes_open(count: int, docs: bool) -> int:
    """The memory of open impressions."""
    task = fresh_task(_config(join_window_ms=3_600_000))
    before, batch = resident_bytes(), []
    for offset, record in enumerate(shown(count, docs)):
        batch.append(_record(offset, {**record, "type": "impression"}))
        if len(batch) == POLL or offset + 1 == count:
            task.fold(batch)
            batch = []
    gc.collect()
    assert len(task.experiments["search"].attribution) == count
    return resident_bytes() - before


def measure(quick: bool) -> list[Result]:
    """Measure time and memory."""
    gc.set_threshold(*GC_THRESHOLDS)
    count = 20_000 if quick else 100_000
    runs = {
        "attribution: joined already": partial(fold_seconds, whole(count)),
        "attribution: in parts": partial(fold_seconds, parts(count)),
    }
    joined, apart = in_turns(runs, 3 if quick else 9).values()
    each = [Spread.of([seconds / count * 1e6 for seconds in found]) for found in (joined, apart)]
    ratio = ratios(apart, joined)
    goals = [Goal("in parts ÷ joined already", ratio.median, at_most=2)]
    columns = ["log", "fold, µs per impression", "÷ joined already"]
    rows = [["joined already", each[0].text(), ""], ["in parts", each[1].text(), ratio.text()]]
    many = 100_000 if quick else 1_000_000
    memory = []
    for docs in (False, True):
        size = in_fresh_process(bytes_open, many, docs) / 1e6
        name = f"{many:,} open impressions" + (", ten documents each" if docs else "")
        memory.append([name, f"{size:,.0f}"])
        goals.append(Goal(name, size, at_most=500 * many / 1_000_000, unit="MB"))
    return [
        Result("Impressions and clicks in parts", METHOD, columns, rows, goals),
        Result("Open impressions", METHOD.rpartition("Memory: ")[2], ["open", "MB"], memory, []),
    ]


if __name__ == "__main__":
    alone(measure, __doc__)
