"""Faults injected into running processes: the expected alert fires for each, and no other.

All faults last at the same time, in several processes that one Prometheus scrapes. Its rules are
those of configs/prometheus, with an hour made some eighty seconds.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.broker.fixture import Broker, without_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.local_kafka import LocalKafka
from tests.operations.logging_services import EXPERIMENTS, Services
from tests.operations.on_kafka import Clicks, KafkaService
from tests.operations.running import Feed, Service
from tests.operations.users import Users, half_and_half
from tests.prometheus.repository import RULES
from tests.prometheus.scaled import scaled
from tests.prometheus.server import Prometheus, serving

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

FACTOR: Final = 45
"""Three quarters of an hour, which the slowest alert takes, become a minute. A range of
five minutes then still has three scrapes."""

PATIENCE: Final = 180.0
"""Until the last alert fires, that of the batch, after a minute on an idle machine."""

START_SECONDS: Final = 120.0
"""Until all processes are scraped; six take some ten seconds on two cores."""

COSTLY: Final = {**EXPERIMENTS["fair"], "decide_every": 1, "slate": 1000}
"""A thousand duels are proposed per record: some 140 records per second are folded."""

FAT: Final = "x" * 4000
"""An unused field: a poll brings 1 MB, which should not take minutes to fold."""

ARREARS: Final = 8000
"""The lag at the start: above the threshold of LagGrowing. A service counts 64 MB of a file at
once, and has no lag while there are more: these have 33."""

POISONED: Final = 0.1
"""The share of invalid records."""

RARE: Final = 0.002
"""The share of records that are too large, or from the future: one in four seconds."""

DAY: Final = 24 * 3_600_000

EXPECTED: Final = {
    "fair": set[str](),
    "silent": {"StreamduelNoRecords"},
    "unfair": {"StreamduelTeamMismatch"},
    "cyclic": {"StreamduelNoCondorcetWinner"},
    "stuck": {"StreamduelBatchStuck"},
    "slow-clicks": {"StreamduelClicksUnjoined"},
    "disobedient": {"StreamduelUnassignedImpressions"},
    "crowded": {"StreamduelClientsCapped"},
    "services": set[str](),
    "malformed": {"StreamduelDeadLetterShare"},
    "oversized": {"StreamduelRecordsTooLarge"},
    "misled": {"StreamduelTimeOutliers"},
    "overloaded": {"StreamduelLagGrowing"},
    "full": {"StreamduelDown"},
    "fenced": {"StreamduelCommitFailing"},
    "unreachable": {"StreamduelNotConnected"},
}
"""Expected alerts, by experiment or process."""


class Stage:
    """All processes with their faults."""

    def __init__(self, folder: Path, shared: Broker, own: LocalKafka, stack: ExitStack) -> None:
        self._folder, self._own, self._stack = folder, own, stack
        self._everybody = Services()
        self._too_many = Users("overloaded", seed=2)
        two = EXPERIMENTS["fair"]
        self._services = self._start("services", EXPERIMENTS)
        self._malformed = self._start("malformed", {"malformed": two})
        self._oversized = self._start("oversized", {"oversized": two})
        self._misled = self._start("misled", {"misled": two})
        self._overloaded = self._start("overloaded", {"overloaded": COSTLY})
        self._full = self._start("full", {"full": two})
        self._fenced = self._on_kafka("fenced", shared.bootstrap_servers)
        self._unreachable = self._on_kafka("unreachable", own.bootstrap_servers)
        self._doomed = stack.enter_context(ExitStack())  # what must end before its broker does
        if not shared.can_restart:
            stack.callback(self._fenced.forget)

    def _start(self, name: str, experiments: Mapping[str, Any]) -> Service:
        return self._stack.enter_context(Service(self._folder / name, experiments))

    def _on_kafka(self, name: str, servers: str) -> KafkaService:
        return self._stack.enter_context(KafkaService(self._folder / name, servers, name))

    @property
    def ports(self) -> dict[str, int]:
        """The port of each process's metrics."""
        return {
            "services": self._services.port,
            "malformed": self._malformed.port,
            "oversized": self._oversized.port,
            "misled": self._misled.port,
            "overloaded": self._overloaded.port,
            "full": self._full.port,
            "fenced": self._fenced.port,
            "unreachable": self._unreachable.port,
        }

    def go_well(self) -> None:
        """Start the users."""
        enter = self._stack.enter_context
        enter(Feed(lambda: self._services.write(self._everybody.records())))
        malformed = Users("malformed", seed=1)
        enter(Feed(lambda: self._malformed.write(_poisoned(malformed))))
        oversized = Users("oversized", seed=4)
        enter(Feed(lambda: self._oversized.write(_oversized(oversized))))
        misled = Users("misled", seed=5)
        enter(Feed(lambda: self._misled.write(_misled(misled))))
        self._overloaded.write(_fat(self._too_many, ARREARS))
        full = Users("full", seed=3)
        enter(Feed(lambda: self._full.write(half_and_half(full, "x", "y", 5))))
        enter(Feed(enter(Clicks(self._fenced)).write))
        self._doomed.enter_context(
            Feed(self._doomed.enter_context(Clicks(self._unreachable)).write)
        )

    def leave_the_doomed(self) -> None:
        """End what writes to the broker that is killed.

        kafka-python's producer leaves sockets open if its broker is gone.
        """
        self._doomed.close()

    def go_wrong(self) -> None:
        """Inject the faults."""
        self._stack.enter_context(Feed(lambda: self._overloaded.write(_fat(self._too_many, 80))))
        self._everybody.silenced = True
        self._own.kill()
        fill_the_disk(self._full)
        self._stack.enter_context(Feed(self._fenced.usurp))


def fill_the_disk(service: Service) -> None:
    """Let every write fail, as on a full disk."""
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (0, 0))


def _poisoned(users: Users) -> Iterator[dict[str, Any] | bytes]:
    for record in half_and_half(users, "x", "y", 10):
        yield b"{" if users.random.random() < POISONED else record


def _oversized(users: Users) -> Iterator[dict[str, Any]]:
    """One record of 500 is over the limit of a megabyte."""
    for record in half_and_half(users, "x", "y", 25):
        yield {**record, "session": "x" * 2**20} if users.random.random() < RARE else record


def _misled(users: Users) -> Iterator[dict[str, Any]]:
    """One record of 500 has a clock that is a day ahead."""
    for record in half_and_half(users, "x", "y", 25):
        yield {**record, "ts": record["ts"] + DAY} if users.random.random() < RARE else record


def _fat(users: Users, number: int) -> Iterator[dict[str, Any]]:
    for record in half_and_half(users, "x", "y", number):
        yield {**record, "session": FAT}


@pytest.fixture(scope="module")
def fired(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The alerts that fired, by experiment or process, after the longest `for`."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "prometheus").mkdir()
    with ExitStack() as stack:
        try:
            own = stack.enter_context(LocalKafka())
        except BrokerUnavailableError as error:
            without_broker(str(error))
        stage = Stage(folder, kafka, own, stack)
        rules = scaled(RULES.read_text(), FACTOR)
        prometheus = stack.enter_context(serving(folder / "prometheus", stage.ports, rules))
        prometheus.until(lambda: _up(prometheus) == len(stage.ports), START_SECONDS)
        stage.go_well()
        prometheus.until(lambda: _learning(prometheus) == len(stage.ports), START_SECONDS)
        stage.leave_the_doomed()
        # A commit would wait for the dead broker, and the metric of the connection for the commit.
        prometheus.until(lambda: _has_committed(prometheus, "unreachable"), START_SECONDS)
        began = time.monotonic()
        stage.go_wrong()
        expected = {(name, alert) for name, alerts in EXPECTED.items() for alert in alerts}
        prometheus.until(lambda: _firing(prometheus, began) >= expected, PATIENCE)
        firing = _firing(prometheus, began)
        return {name: {alert for about, alert in firing if about == name} for name in EXPECTED}


def _up(prometheus: Prometheus) -> int:
    """How many processes own a partition, and so have created their topics."""
    return len(prometheus.query("count by (instance) (streamduel_snapshot_age_seconds)"))


def _learning(prometheus: Prometheus) -> int:
    """How many processes have folded records."""
    return len(prometheus.query("sum by (instance) (streamduel_records_total) > 0"))


def _has_committed(prometheus: Prometheus, instance: str) -> bool:
    """Whether a process without new records has committed all: it did so twice a second."""
    age = f'streamduel_snapshot_age_seconds{{instance="{instance}"}}'
    return bool(prometheus.query(f"{age} > 1"))


def _firing(prometheus: Prometheus, began: float) -> set[tuple[str, str]]:
    """Alerts that have fired since all processes ran, with their subjects."""
    seconds = math.ceil(time.monotonic() - began)
    found = prometheus.query(f'max_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])')
    return {
        (it.labels.get("experiment", it.labels["instance"]), it.labels["alertname"]) for it in found
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_only_the_expected_alerts_fire(fired: dict[str, set[str]], name: str) -> None:
    assert fired[name] == EXPECTED[name]
