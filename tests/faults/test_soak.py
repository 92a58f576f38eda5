"""Millions of records with arms that come and go: memory and metrics stay as they are.

The whole service but for the broker: the real runner, fold, commits and metrics, over a click log
that is made while it is read. `make soak` folds 20 million records, `make faults` two million.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import linear_regression
from typing import Any, Final

import pytest

from streamduel.config import Config
from streamduel.connector import PartitionCommit, Poll, Snapshot
from streamduel.monitoring.collector import Metrics
from streamduel.stream.runner import Runner
from streamduel.testing import Record, encode
from tests.faults.figures import Figures
from tests.faults.processes import fork
from tests.faults.scale import scaled

RECORDS: Final = int(os.environ.get("STREAMDUEL_SOAK_RECORDS", scaled(2_000_000, 200_000)))
CYCLES: Final = 20
"""How often an arm comes and another goes."""

POLL: Final = 5000
WINDOW: Final = RECORDS // CYCLES // 2
"""Ids in the dedupe window: full within the first cycle."""

SETTLED: Final = CYCLES // 4
"""Cycles after which all caches are full."""

MAX_SLOPE: Final = 2**20
"""Bytes by which the memory may grow from one cycle to the next; the noise of an allocator."""

RATE: Final = 20_000
"""Records in a second of the runner's clock."""

TIMEOUT_SECONDS: Final = 3600.0

START: Final = 1_790_000_000_000
ARMS: Final = ["arm-0", "arm-1", "arm-2", "arm-3", "arm-4", "arm-5"]

CONFIG: Final = {
    "source": {"connector": "files", "path": "unused"},
    "sink": {"connector": "files", "path": "unused"},
    "snapshots": {"connector": "files", "path": "unused"},
    "dedupe": {"window_records": WINDOW, "window_ms": 3_600_000},
    "experiments": {"search": {"arms": ARMS, "decide_every": 100, "seed": 1}},
}


def endless_log() -> Iterator[bytes]:
    """Duels, and in each cycle an arm that comes and one that goes."""
    arms, number = list(ARMS), 0
    for cycle in range(1_000_000):
        if cycle:
            coming, going = f"arm-{cycle + len(ARMS) - 1}", arms.pop(0)
            arms.append(coming)
            for action, arm in (("add_arm", coming), ("retire_arm", going)):
                yield encode({
                    "type": "control", "id": f"{action}-{arm}", "experiment": "search",
                    "action": action, "arm": arm,
                })  # fmt: skip
        duels = [
            b'{"type": "duel", "id": "%%d", "experiment": "search", "a": "%s", "b": "%s",'
            b' "winner": "%s"}' % (a.encode(), b.encode(), winner)
            for a in arms for b in arms if a < b for winner in (b"a", b"b", b"b")
        ]  # fmt: skip
        for _ in range(RECORDS // CYCLES):
            yield duels[number * 7919 % len(duels)] % number
            number += 1


class EndlessSource:
    """A `Source` of `endless_log`."""

    topic = "clicks"
    partitions = 1
    connected = True

    def __init__(self) -> None:
        self._values = endless_log()
        self._gained = self._sought = False
        self.offset = 0

    def home(self, experiment: str) -> int:
        return 0

    def log_id(self, partition: int) -> str | None:
        return None

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        if not self._gained:
            self._gained = True
            return Poll(gained=[0])
        if hold or not self._sought:
            return Poll()
        first = self.offset
        records = [
            Record(offset, value, START + offset)
            for offset, value in enumerate(islice(self._values, POLL), first)
        ]
        self.offset += len(records)
        return Poll(records={0: records})

    def seek(self, partition: int, offset: int | None) -> int:
        assert not offset
        self._sought = True
        return 0

    def caught_up(self, partition: int) -> bool:
        return False

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        return {}

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        return {}

    def reannounce(self) -> None:
        raise AssertionError

    def close(self) -> None: ...


class Discard:
    """An `Outlet` that counts outputs."""

    def __init__(self) -> None:
        self.dead_letters = 0

    def load(self, partition: int) -> Snapshot | None:
        return None

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        self.dead_letters += sum(len(commit.dead_letters) for commit in commits)

    def finish(self, commits: Sequence[PartitionCommit]) -> None: ...

    def close(self) -> None: ...


def memory() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def soak(result: Path) -> None:
    """Fold `RECORDS`; write what was measured after each cycle."""
    source, outlet, metrics = EndlessSource(), Discard(), Metrics("files")
    config = Config.model_validate(CONFIG)
    # Time passes with the records, so each run commits and measures at the same ones.
    runner = Runner(config, source, outlet, lambda: source.offset / RATE, [metrics])
    samples: list[dict[str, int]] = []

    def stop() -> bool:
        if source.offset >= (len(samples) + 1) * (RECORDS // CYCLES):
            series = sum(len(metric.samples) for metric in metrics.collect())
            samples.append({"memory": memory(), "series": series})
        return len(samples) == CYCLES

    began = time.monotonic()
    runner.run(stop)
    seconds = time.monotonic() - began
    found = {"samples": samples, "seconds": seconds, "dead_letters": outlet.dead_letters}
    result.write_text(json.dumps(found))


@pytest.mark.slow
def test_soak(tmp_path: Path, report: Callable[[Figures], None]) -> None:
    result = tmp_path / "soak.json"
    process = fork(soak, result)
    process.join(TIMEOUT_SECONDS)
    assert process.exitcode == 0
    found: dict[str, Any] = json.loads(result.read_text())
    samples = found["samples"][SETTLED:]
    sizes = [sample["memory"] for sample in samples]
    slope = linear_regression(range(len(sizes)), sizes).slope
    per_million = slope / (RECORDS / CYCLES) * 1e6
    note = (
        f"{CYCLES - 1} arms came and {CYCLES - 1} went; memory {sizes[-1] / 2**20:.0f} MB, slope "
        f"{per_million / 2**20:+.2f} MB per million records; {samples[-1]['series']} series, "
        f"constant; {RECORDS / found['seconds']:,.0f} records/s"
    )
    report(Figures("soak, arms coming and going", RECORDS, 0, found["dead_letters"], 0, (), note))
    assert len({sample["series"] for sample in samples}) == 1
    assert slope < MAX_SLOPE, note
