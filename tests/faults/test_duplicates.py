"""Records that are sent again: inside the dedupe window they count once, beyond it twice."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamduel.testing import duel
from tests.broker.fixture import Broker, Topics
from tests.faults.figures import Figures
from tests.faults.kafka_runs import EXPERIMENTS, FIRST_STAMP, PARTITIONS, configure_faults
from tests.faults.processes import inspect, run_service
from tests.faults.scale import scaled
from tests.faults.trial import compare, outcomes
from tests.logs import ARMS

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

DUELS = scaled(200_000, 20_000)
WINDOW = scaled(5_000, 500)
KILLS = scaled(10, 3)

Sent = tuple[str, bytes]


def sent_again(totals: dict[str, int]) -> Iterator[Sent]:
    """Duels; one of ten is sent again at once, and one of ten after the window has forgotten it.

    `WINDOW` records of the same experiment lie in between, so at least as many of its partition.
    """
    rng = random.Random(9)
    old: dict[str, deque[tuple[int, Sent]]] = defaultdict(deque)
    written: dict[str, Iterator[int]] = defaultdict(count)
    for number in range(DUELS):
        name = rng.choice(EXPERIMENTS)
        first, second = rng.sample(ARMS, 2)
        record = name, duel(name, number, first, second, rng.choice("ab"))
        yield record
        at, totals["accepted"] = next(written[name]), totals["accepted"] + 1
        if number % 10 == 5:
            totals["duplicate"] += 1
            yield record
        elif number % 10 == 0:
            old[name].append((at, record))
        if old[name] and old[name][0][0] + WINDOW < at:
            totals["accepted"] += 1
            yield old[name].popleft()[1]


def test_duplicates_inside_and_beyond_the_window(
    kafka: Broker, topics: Topics, tmp_path: Path, report: Callable[[Figures], None]
) -> None:
    servers, log = kafka.bootstrap_servers, topics(PARTITIONS, retention_ms=-1)
    totals: dict[str, int] = defaultdict(int)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=2**18) as producer:
        for number, (name, value) in enumerate(sent_again(totals)):
            stamp = FIRST_STAMP + number
            producer.send(log, value, key=name.encode(), timestamp_ms=stamp)
    undisturbed, killed = (
        configure_faults(tmp_path / name, servers, log, topics, WINDOW)
        for name in ("undisturbed", "killed")
    )
    assert not run_service(undisturbed.config)
    told: dict[str, int] = defaultdict(int)
    for (_, outcome), number in outcomes(inspect(undisturbed.config)).items():
        told[outcome] += number
    assert {outcome: told[outcome] for outcome in totals} == totals
    assert sum(told.values()) == sum(totals.values())
    rng = random.Random(2)
    kills = sum(run_service(killed.config, seconds=rng.uniform(0.1, 0.6)) for _ in range(KILLS))
    assert not run_service(killed.config)
    beyond = totals["accepted"] - DUELS
    note = f"{totals['duplicate']:,} inside counted once, {beyond:,} beyond it twice, as documented"
    fault = "records sent again inside and beyond the dedupe window, and `kill -9`"
    report(compare(killed, undisturbed, fault, kills, (), note))
