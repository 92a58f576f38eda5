"""A seeded log of raw records: every type, duplicates, disorder, late clicks, invalid records."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamduel.testing import encode
from tests.logs import POISON

START = 1_700_000_000_000
STEP_MS = 10
JOIN_WINDOW_MS = 2_000
DEDUPE_WINDOW_MS = 60_000

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
RANKS = 6
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "search": {"segments": {"class": ["navigational", "informational"]}},
    "shop": {
        "ties": "drop", "no_click": "drop", "credit": {"name": "weighted", "weights": {"cart": 5,
        "click": 1}},
    },
    "news": {"credit": {"name": "first_click"}},
    "docs": {"credit": {"name": "probabilistic"}},
}  # fmt: skip


class Raw(NamedTuple):
    """One record: its timestamp, its experiment, which is its key, and its value."""

    timestamp: int
    experiment: str
    value: bytes


def raw_log(seed: int, impressions: int) -> list[Raw]:
    """The records in the order of their timestamps; the last one ends every join window."""
    rng = random.Random(seed)
    found = [it for number in range(impressions) for it in _story(rng, number)]
    records = [Raw(*it) for it in heapq.merge(sorted(found))]
    end = records[-1].timestamp + 100 * JOIN_WINDOW_MS
    for name in EXPERIMENTS:
        last = {"type": "click", "id": "last", "experiment": name, "impression": "-", "rank": 0}
        records.append(Raw(end, name, encode(last)))
    return records


def _story(rng: random.Random, number: int) -> Iterator[tuple[int, str, bytes]]:
    """An impression or duel, with what belongs to it, at some times; duplicates included."""
    experiment = rng.choice(list(EXPERIMENTS))
    at = START + JOIN_WINDOW_MS * 2 + number * STEP_MS
    if rng.random() < 0.02:
        yield at, experiment, rng.choice(POISON)
    for offset, record in _records(rng, experiment, f"{experiment}-{number}"):
        time = at + offset
        yield time, experiment, encode({**record, "experiment": experiment})
        if rng.random() < 0.1:  # also after the join window
            again = time + rng.randint(0, 3 * JOIN_WINDOW_MS)
            yield again, experiment, encode({**record, "experiment": experiment})


def _records(rng: random.Random, experiment: str, id_: str) -> Iterator[tuple[int, dict[str, Any]]]:
    a, b = rng.sample(ARMS, 2)
    base: dict[str, Any] = {"id": id_, "a": a, "b": b}
    if experiment == "search":
        base["segment"] = rng.choice(
            ["navigational", {"class": "informational"}, {"class": "other"}, "de"]
        )
    kind = rng.random()
    if kind < 0.3:
        yield 0, {"type": "duel", **base, "winner": rng.choice(["a", "a", "b", "tie"])}
        return
    if kind < 0.32:
        counts = {"wins_a": rng.randint(0, 3), "wins_b": 1, "ties": 1}
        yield 0, {"type": "duels", **base, **counts}
        return
    teams = [rng.choice(["a", "b", "a", "b", None]) for _ in range(RANKS)]
    lists: dict[str, Any] = {"teams": teams}
    if rng.random() < 0.5:
        lists["chances"] = [None if team is None else round(rng.random(), 2) for team in teams]
    clicks = [_click(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    if kind < 0.5:
        yield 0, {"type": "interleaving", **base, **lists, "clicks": clicks}
        return
    docs = [f"{id_}-doc-{rank}" for rank in range(RANKS)]
    if rng.random() < 0.95:  # else its clicks are never joined
        yield 0, {"type": "impression", **base, **lists, "docs": docs}
    for place, click in enumerate(clicks):
        record = {"type": "click", "id": f"{id_}-{place}", "impression": id_, **click}
        if rng.random() < 0.3:
            record["doc"] = docs[record.pop("rank")]
        elif rng.random() < 0.05:
            record["rank"] = RANKS  # outside the list
        # Before the impression, soon after it, at the end of the join window, too late.
        edges = [-JOIN_WINDOW_MS - 1, -JOIN_WINDOW_MS, JOIN_WINDOW_MS, JOIN_WINDOW_MS + 1]
        yield rng.choice([-rng.randint(1, 500), rng.randint(0, 1500), *edges[:4]]), record


def _click(rng: random.Random) -> dict[str, Any]:
    click: dict[str, Any] = {"rank": rng.randrange(RANKS)}
    if rng.random() < 0.5:
        click["ts"] = START + rng.randint(0, 10_000)
    if rng.random() < 0.3:
        click["action"] = rng.choice(["cart", "hover"])
    return click
