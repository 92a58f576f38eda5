"""Seeded click logs, with duplicates and every kind of invalid record."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

from streamduel.testing import encode

ARMS = ("bm25", "ltr-v1", "ltr-v2", "ltr-v3", "dense", "hybrid")


POISON = (
    b"",
    b"{",
    b"not json",
    b"\xff\xfe\x00",
    b"[1, 2]",
    b'{"type": "duel"}',
    b'{"type": "mystery", "id": "1", "experiment": "search"}',
    b'{"type": "duel", "id": "p", "experiment": "search", "a": "bm25", "b": "nobody",'
    b' "winner": "a"}',
    b'{"type": "duel", "id": "p", "experiment": "nowhere", "a": "x", "b": "y", "winner": "a"}',
    b'{"type": "duels", "id": "p", "experiment": "search", "a": "bm25", "b": "dense", "wins_a": -1,'
    b' "wins_b": 0, "ties": 0}',
    b'{"type": "interleaving", "id": "p", "experiment": "search", "a": "bm25", "b": "dense",'
    b' "teams": ["a", "b"], "clicks": [7]}',
)


def values(
    seed: int,
    number: int,
    experiments: Sequence[str] = ("search",),
    arms: Sequence[str] = ARMS,
    duplicates: float = 0.02,
    poison: float = 0.01,
) -> list[tuple[str, bytes]]:
    """Experiment and value of each record: mostly duels, and every other type."""
    return list(islice(endless_values(seed, experiments, arms, duplicates, poison), number))


def endless_values(
    seed: int,
    experiments: Sequence[str] = ("search",),
    arms: Sequence[str] = ARMS,
    duplicates: float = 0.02,
    poison: float = 0.01,
) -> Iterator[tuple[str, bytes]]:
    """As `values`, without an end."""
    rng = random.Random(seed)
    recent: deque[tuple[str, bytes]] = deque(maxlen=500)
    for number in count():
        experiment = rng.choice(experiments)
        chance = rng.random()
        if chance < poison:
            made = (experiment, rng.choice(POISON))
        elif chance < poison + duplicates and recent:
            made = rng.choice(recent)
        else:
            made = (experiment, encode(_record(rng, experiment, number, arms)))
        recent.append(made)
        yield made


def _record(
    rng: random.Random, experiment: str, number: int, arms: Sequence[str]
) -> dict[str, Any]:
    first, second = rng.sample(range(len(arms)), 2)
    first_wins = rng.random() < 0.5 + 0.06 * (second - first)
    record: dict[str, Any] = {
        "id": f"{experiment}-{number}", "experiment": experiment,
        "a": arms[first], "b": arms[second], "ts": 1_790_000_000_000 + number * 7,
    }  # fmt: skip
    kind = rng.random()
    if kind < 0.7:
        winner = "tie" if rng.random() < 0.05 else "a" if first_wins else "b"
        if rng.random() < 0.05:
            return {"type": "duel", **record, "b": record["a"], "winner": None}
        return {"type": "duel", **record, "winner": winner}
    if kind < 0.9:
        teams = [side for _ in range(5) for side in rng.sample("ab", 2)]
        if kind < 0.8:
            return {"type": "impression", **record, "teams": teams}
        side = "a" if first_wins else "b"
        clicks = [rank for rank, team in enumerate(teams) if team == side][: rng.randint(0, 2)]
        return {"type": "interleaving", **record, "teams": teams, "clicks": clicks}
    if kind < 0.95:  # often without impression, late, or before it
        other = f"{experiment}-{max(0, number - rng.randint(-5, 60))}"
        return {"type": "click", **record, "impression": other, "rank": rng.randint(0, 9)}
    counts = {"wins_a": rng.randint(0, 30), "wins_b": rng.randint(0, 20), "ties": rng.randint(1, 3)}
    return {"type": "duels", **record, **counts}
