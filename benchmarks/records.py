"""Click logs for measurements, with the same bytes in every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamduel.config import Config
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask

START = 1_790_000_000_000
"""Stream time of the first record, in milliseconds."""

_DUEL = (
    '{"type":"duel","id":"%032x","experiment":"%s","ts":%d,"a":"%s","b":"%s","winner":"%s",'
    '"session":"%024x","query":"waterproof running shoes for women","page":1,"lang":"en"}'
)

POISON = (
    b'{"type":"duel","id":"1","experiment":"search","a":"rank',
    b'{"type":"duel","id":"2","experiment":"search","a":"nobody","b":"ranker-1","winner":"a"}',
    b'{"type":"duel","id":"3","experiment":"search","a":"ranker-0","b":"ranker-1","winner":7}',
    b"\xff\xfe\x00\x01",
)
"""Records that become dead letters, each for a different reason."""


class Record(NamedTuple):
    """A record as a client delivers it."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes


def arms(n_arms: int) -> list[str]:
    """The names of K rankers."""
    return [f"ranker-{number}" for number in range(n_arms)]


def duel_values(
    count: int, n_arms: int, experiment: str = "search", seed: int = 1
) -> Iterator[bytes]:
    """Duels of about 250 bytes, with additional fields as in a real click log."""
    luck, names = random.Random(seed), arms(n_arms)
    bits, choice = luck.getrandbits, luck.choice
    for number in range(count):
        first = choice(names)
        second = choice(names)
        while second == first:
            second = choice(names)
        fields = (
            bits(128),
            experiment,
            START + number // 50,
            first,
            second,
            choice("ab"),
            bits(96),
        )
        yield (_DUEL % fields).encode()


def interleaving_values(
    count: int, n_arms: int, experiment: str = "search", seed: int = 1
) -> Iterator[bytes]:
    """Interleaved impressions of ten ranks and up to three clicks."""
    luck, names = random.Random(seed), arms(n_arms)
    for number in range(count):
        first, second = luck.sample(names, 2)
        event = {
            "type": "interleaving",
            "id": f"{luck.getrandbits(128):032x}",
            "experiment": experiment,
            "ts": START + number // 50,
            "a": first,
            "b": second,
            "teams": [luck.choice("ab") for _ in range(10)],
            "clicks": luck.sample(range(10), luck.randrange(4)),
        }
        yield json.dumps(event, separators=(",", ":")).encode()


def dirty_values(count: int, n_arms: int) -> Iterator[bytes]:
    """Duels with 2 % duplicates and 1 % dead letters."""
    luck, lately = random.Random(2), b""
    for number, value in enumerate(duel_values(count, n_arms)):
        outcome = luck.random()
        if outcome < 0.01:
            yield POISON[number % len(POISON)]
        elif outcome < 0.03 and lately:
            yield lately
        else:
            yield value
            lately = value


def records(values: Iterator[bytes], per_millisecond: int = 50) -> list[Record]:
    """The values as a click log, several records with the same time."""
    return [
        Record(offset, START + offset // per_millisecond, b"search", value)
        for offset, value in enumerate(values)
    ]


def configuration(n_arms: int, decide_every: int, **sections: Any) -> Config:
    """A configuration with one experiment, `search`."""
    experiment = {"arms": arms(n_arms), "decide_every": decide_every}
    bare: dict[str, Any] = {"source": {}, "sink": {}, "snapshots": {}}
    return Config.model_validate({**bare, "experiments": {"search": experiment}, **sections})


def fresh_task(config: Config) -> PartitionTask:
    """A task before its first record."""
    task = PartitionTask(config, ClickLog("clicks", 1, lambda _: 0), 0)
    task.begin(0)
    return task
