"""Random configurations and click logs, small enough that every window ends within them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from streamduel.config import Config
from streamduel.connector import ControlRecord
from streamduel.records import Rejected
from streamduel.testing.broker import START
from streamduel.testing.records import Record

ARMS: Final = ("bm25", "ltr", "dense", "hybrid")

POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"name": "top_two"},
    {"name": "batched_top_two", "horizon": 10_000},
    {"name": "rucb"},
    {"name": "ccb"},
    {"name": "uniform"},
    {"name": "double_thompson"},
    {"name": "double_thompson", "window": 20},
    {"name": "merge_rucb"},
    {"name": "c2b", "horizon": 10_000},
    {"name": "scb"},
)

FORGED: Final = (
    b'{"type":"control_marker","id":"m","experiment":"","control_offset":0,"digest":"0"}'
)

JUNK: Final = (
    Rejected("too_large", "the batch at offsets 0 to 9 is too large."),
    FORGED, b"", b"{", b"\xff\xfe", b"[1]", b'{"type": "mystery", "id": "1", "experiment": "e0"}',
    b'{"type": "duel", "id": "u", "experiment": "nowhere", "a": "x", "b": "y", "winner": "a"}',
    b'{"type": "duel", "id": "u", "experiment": "e1", "a": "bm25", "b": "nobody", "winner": "a"}',
)  # fmt: skip

CONTROLS: Final[tuple[dict[str, Any], ...]] = (
    {"action": "pause"},
    {"action": "resume"},
    {"action": "reset"},
    {"action": "add_arm", "arm": "new"},
    {"action": "add_arm", "arm": "newer", "like": "ltr"},
    {"action": "retire_arm", "arm": "new"},
    {"action": "retire_arm", "arm": "bm25"},
    {"action": "freeze_pair", "a": "bm25", "b": "ltr"},
    {"action": "unfreeze_pair"},
    {"action": "apply", "settings": {"decide_every": 2, "slate": 2}},
    {"action": "apply", "settings": {"policy": {"name": "rucb", "window": 20}, "ties": "drop"}},
    {"action": "apply", "settings": {"policy": {"name": "c2b", "horizon": 10_000}}},
    {"action": "apply", "settings": {"credit": {"name": "first_click"}, "no_click": "drop"}},
    {"action": "apply", "settings": {"arms": ["ltr", "bm25", "late"]}},
    {"action": "apply", "settings": {"guardrails": {"fallback": {"arm": "ltr", "idle_ms": 1000}}}},
    {"action": "apply", "settings": {"join_window_ms": 3}},
    {"action": "note", "text": "trained again"},
)

_KINDS: Final = {
    "duel": 46, "impression": 16, "click": 20, "interleaving": 6, "duels": 4, "control": 8
}  # fmt: skip
"""Types of records, with their shares in percent."""

_encode: Final = msgspec.json.Encoder().encode


class Workload(NamedTuple):
    """What a schedule processes.

    Attributes:
        config: several experiments, with small windows.
        clicks: the click log, per partition.
        controls: the control topic, per partition.
    """

    config: Config
    clicks: list[list[Record]]
    controls: list[list[ControlRecord]]

    def next_log(self, rng: random.Random) -> list[list[Record]]:
        """The click log of a topic that replaces the first; it may have other partitions."""
        partitions = rng.choice((len(self.clicks), 1, 2, 3))
        return [each.log() for each in _partitions(rng, list(self.config.experiments), partitions)]

    @property
    def controlled(self) -> bool:
        """Whether there is a control topic."""
        return self.config.control_topic is not None


def home(experiment: str, partitions: int) -> int:
    """The partition of an experiment; its name ends with a number."""
    return int(experiment[1:]) % partitions


def workload(rng: random.Random) -> Workload:
    """A random configuration and click log."""
    partitions = rng.choice((1, 2, 2, 3, 4))
    names = [f"e{number}" for number in range(rng.randint(1, 5))]
    window_ms = rng.choice((50, 200, 1000))
    controlled = rng.random() < 0.25
    config = Config.model_validate(
        {
            "source": {"control_topic": "control"} if controlled else {},
            "sink": {}, "snapshots": {},
            "dedupe": {"window_records": rng.choice((5, 20, 60)), "window_ms": window_ms},
            "limits": {
                "max_ranks": rng.choice((3, 1000)),
                "max_duels_per_record": rng.choice((12, 1000)),
                "max_record_bytes": rng.choice((150, 2**20)),
            },
            "time": {"max_advance_ms": rng.choice((20, 100, 3_600_000))},
            "commit": {
                "interval_ms": rng.choice((5, 40, 200)),
                "max_outputs": rng.choice((2, 10, 1000)),
            },
            "experiments": {name: _experiment(rng, window_ms) for name in names},
        }
    )  # fmt: skip
    made = _partitions(rng, names, partitions)
    clicks = [each.log() for each in made]
    return Workload(config, clicks, [each.controls() if controlled else [] for each in made])


def _experiment(rng: random.Random, window_ms: int) -> dict[str, Any]:
    arms = rng.sample(ARMS, rng.randint(2, 4))
    settings: dict[str, Any] = {
        "arms": arms,
        "seed": rng.randrange(100),
        "policy": rng.choice(POLICIES),
        "ties": rng.choice(("half", "drop")),
        "no_click": rng.choice(("tie", "drop")),
        "join_window_ms": rng.randint(0, window_ms),
        "max_per_client": rng.choice((None, None, 1, 4)),
        "decide_every": rng.choice((1, 1, 3, 10)),
        "slate": rng.choice((1, 1, 3)),
        "credit": {"name": rng.choice(("click_count", "any_click", "last_click"))},
        "batch_republish_ms": 100,
        "batch_deadline_ms": rng.choice((None, 150)),
    }
    if rng.random() < 0.3:
        settings["guardrails"] = {"fallback": {"arm": rng.choice(arms), "idle_ms": 1000}}
    return settings


def _partitions(rng: random.Random, names: list[str], partitions: int) -> list[_Partition]:
    return [
        _Partition(rng, [name for name in names if home(name, partitions) == number], names)
        for number in range(partitions)
    ]


class _Partition:
    """Makes the click log of one partition."""

    def __init__(self, rng: random.Random, names: list[str], all_names: list[str]) -> None:
        self._rng = rng
        self._names = names or all_names[:1]
        self._shown = 0
        self._made: list[bytes | Rejected] = []

    def log(self) -> list[Record]:
        rng, offset, time, records = self._rng, 0, START, list[Record]()
        step = rng.choice((0, 1, 5, 30))
        wrong = rng.choice((0, 0, 0.02, 0.2))  # share of timestamps that are wrong
        for number in range(rng.randint(0, 90)):
            time += rng.randint(0, step) if rng.random() < 0.98 else rng.choice((300, 3000))
            value = self._value(number)
            self._made.append(value)
            stamp = time + (rng.randint(-50, 0) if rng.random() < 0.1 else 0)
            if rng.random() < wrong:
                stamp = rng.choice((-1, 0, 4_102_444_800_000, time + 1000))
            records.append(Record(offset, value, stamp, rng.choice(self._names).encode()))
            offset += 1 if rng.random() < 0.9 else rng.randint(2, 5)
        return records

    def controls(self) -> list[ControlRecord]:
        rng = self._rng
        made = []
        for offset in range(rng.randint(0, 8)):
            name = rng.choice(self._names)
            event = {"type": "control", "id": f"c{rng.randrange(20)}", "experiment": name}
            value = _encode({**event, **rng.choice(CONTROLS)})
            if rng.random() < 0.1:
                value = b'{"type": "control"'
            made.append(ControlRecord(offset, name.encode(), value))
        return made

    def _value(self, number: int) -> Any:
        rng = self._rng
        chance = rng.random()
        if chance < 0.07 and self._made:
            return rng.choice(self._made[-rng.choice((3, 30, 70)) :])
        if chance < 0.1:
            return rng.choice(JUNK)
        value = _encode(self._event(number))
        if chance < 0.12:  # damaged on the way
            at = rng.randrange(len(value))
            return value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]
        return value

    def _event(self, number: int) -> Mapping[str, Any]:
        rng = self._rng
        kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
        event: dict[str, Any] = {
            "type": kind, "id": str(number), "experiment": rng.choice(self._names)
        }  # fmt: skip
        if rng.random() < 0.5:
            event["client"] = rng.choice(("u0", "u1", "u2"))
        match kind:
            case "control":
                return {**event, **rng.choice(CONTROLS)}
            case "click":
                shown = f"i{self._shown + rng.choice((-5, -1, 0, 0, 1, 2))}"
                where = {"rank": rng.randint(0, 3)} if rng.random() < 0.7 else {"doc": "d0"}
                return {**event, "impression": shown, **where}
        event["a"], event["b"] = rng.sample(ARMS, 2)
        teams = [rng.choice(("a", "b", None)) for _ in range(rng.randint(1, 4))]
        match kind:
            case "duel" if rng.random() < 0.1:
                event.update(b=event["a"], winner=None)
            case "duel":
                event["winner"] = rng.choice(("a", "b", "tie"))
            case "duels":
                event.update(wins_a=rng.randint(0, 9), wins_b=rng.randint(0, 9), ties=1)
            case "interleaving":
                clicks = [rng.randrange(len(teams)) for _ in range(rng.randint(0, 2))]
                event.update(teams=teams, clicks=clicks)
            case "impression":
                self._shown += 1
                docs = [f"d{rank}" for rank in range(len(teams))] if rng.random() < 0.5 else None
                event.update(id=f"i{self._shown}", teams=teams, docs=docs)
        return event
