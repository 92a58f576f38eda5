"""A click log that nobody should trust: the service survives it, and counts what is genuine."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.figures import Figures
from tests.faults.kafka_runs import (
    EXPERIMENTS,
    FIRST_STAMP,
    PARTITIONS,
    Run,
    configure_faults,
)
from tests.faults.processes import inspect, run_service
from tests.faults.scale import scaled
from tests.faults.trial import compare
from tests.logs import values

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = scaled(200_000, 20_000)
EVERY = RECORDS // 20
"""A round of hostile records comes after so many genuine ones."""

KILLS = scaled(10, 2)
BRACKETS = scaled(10, 1)
BOMB_BYTES = scaled(200, 80) * 2**20
CODECS = ("gzip", "snappy", "lz4", "zstd")
YEAR_2100 = 4_102_444_800_000
EXPERIMENT = EXPERIMENTS[0]

Report = Callable[[Figures], None]


class Sent(NamedTuple):
    """A record of the click log."""

    key: str
    value: bytes
    stamp: int
    codec: str | None = None
    aborted: bool = False


def genuine() -> Iterator[Sent]:
    for number, (experiment, value) in enumerate(values(1, RECORDS, EXPERIMENTS, poison=0.0)):
        yield Sent(experiment, value, FIRST_STAMP + number)


def document(**fields: Any) -> bytes:
    base = {"experiment": EXPERIMENT, "a": "bm25", "b": "dense"}
    return json.dumps(base | fields).encode()


def hostile(round_number: int, near: Sent) -> Iterator[Sent]:
    """Records that must change no count of any experiment."""

    def make(value: bytes, stamp: int = near.stamp, **how: Any) -> Sent:
        return Sent(EXPERIMENT, value, stamp, **how)

    yield make(b"junk", YEAR_2100)
    yield near._replace(stamp=YEAR_2100)  # sent twice, by a client with a wrong clock
    yield make(b"\xff\xfe", 0)
    for stamp in (near.stamp + 3_500_000, YEAR_2100, near.stamp):
        yield near._replace(stamp=stamp)
    number = f"hostile-{round_number}"
    huge = 2**40
    yield make(document(type="duels", id=f"{number}-duels", wins_a=huge, wins_b=0, ties=0))
    yield make(document(type="duel", id=f"{number}-arm", winner="a", b="d" * 200_000))
    ranks = ["a", "b"] * 60_000
    yield make(document(type="impression", id=f"{number}-ranks", teams=ranks), codec="gzip")
    yield make(document(type="duel", id=f"{number}-aborted", winner="b"), aborted=True)
    for _ in range(BRACKETS):
        yield make(b"[" * 1_000_000, codec="gzip")
    yield make(bytes(BOMB_BYTES), codec=CODECS[round_number % len(CODECS)])


def send(servers: str, topic: str, records: Iterator[Sent]) -> None:
    """Append records in this order, each with its own codec, some in a transaction that aborts."""
    common = {"bootstrap_servers": servers, "max_request_size": 2**30}
    with ExitStack() as stack:
        producers = {
            codec: stack.enter_context(
                closing(KafkaProducer(compression_type=codec, linger_ms=20, **common))
            )
            for codec in (None, *CODECS)
        }
        aborting = KafkaProducer(transactional_id=f"{topic}-aborting", **common)
        stack.enter_context(closing(aborting))
        aborting.init_transactions()
        former: Any = None
        refused: list[Exception] = []
        for record in records:
            producer = aborting if record.aborted else producers[record.codec]
            if former not in {None, producer}:
                former.flush()
            if record.aborted:
                aborting.begin_transaction()
            sent = producer.send(
                topic, record.value, key=record.key.encode(), timestamp_ms=record.stamp
            )
            if not record.aborted:
                sent.add_errback(refused.append)
            if record.aborted:
                aborting.abort_transaction()
            former = producer
    assert not refused, refused[:3]


def with_hostile() -> Iterator[Sent]:
    for number, record in enumerate(genuine()):
        yield record
        if number % EVERY == EVERY // 2:
            yield from hostile(number // EVERY, record)


def counts(run: Run) -> dict[str, Any]:
    """The wins of each experiment."""
    report = inspect(run.config)["experiments"]
    return {name: each["wins"] for name, each in report.items()}


def test_a_hostile_log(kafka: Broker, topics: Topics, tmp_path: Path, report: Report) -> None:
    servers = kafka.bootstrap_servers

    def make(name: str, log: str) -> Run:
        # Duplicates fill the dedupe window, too, and an impression closes when the window forgets
        # it: the window holds the whole log, so that both logs close the same impressions.
        return configure_faults(tmp_path / name, servers, log, topics, 2 * RECORDS)

    # Kafka 4 refuses a timestamp that is an hour ahead, unless it is told not to.
    anything = 2**63 - 1
    logs = [
        topics(PARTITIONS, retention_ms=-1, message_timestamp_after_max_ms=anything)
        for _ in range(2)
    ]
    send(servers, logs[0], genuine())
    send(servers, logs[1], with_hostile())
    clean, undisturbed, killed = make("clean", logs[0]), make("calm", logs[1]), make("k", logs[1])
    assert not run_service(clean.config)
    began = time.monotonic()
    assert not run_service(undisturbed.config)
    seconds = time.monotonic() - began
    assert counts(undisturbed) == counts(clean)
    rng = random.Random(1)
    kills = sum(run_service(killed.config, seconds=rng.uniform(0.0, 0.3)) for _ in range(KILLS))
    assert not run_service(killed.config)
    note = (
        f"{len(CODECS)} codecs' bombs of {BOMB_BYTES >> 20} MB, brackets, clocks of 2100, "
        f"2^40 duels, 120,000 ranks, aborted transactions; wins as without them; folded in "
        f"{seconds:.0f} s"
    )
    fault = "a hostile click log, and `kill -9` in it"
    report(compare(killed, undisturbed, fault, kills, (), note))
