"""Pytest plugin: `kafka` and `topics` on the first broker that is available; `cluster` on Java.

In this order: the broker of STREAMDUEL_TEST_KAFKA, a container, local Java. A broker starts when
the first test of a session (with xdist: of a worker) uses it. Without any broker, the tests that
need one are listed at the end of the run, which fails in CI and with STREAMDUEL_REQUIRE_KAFKA.
"""

import gc
import os
import re
import uuid
import warnings
from collections.abc import Iterator
from typing import ClassVar, NoReturn, Protocol

import pytest
from kafka import KafkaAdminClient
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from tests.broker.cluster import LocalCluster
from tests.broker.jars import BrokerUnavailableError, kafka_version
from tests.broker.local_kafka import STOP_SECONDS, LocalKafka, free_port, wait_for_broker
from tests.broker.properties import QUICK_FAILOVER, broker_properties

EXTERNAL = "STREAMDUEL_TEST_KAFKA"
REQUIRE = "STREAMDUEL_REQUIRE_KAFKA"

FULL = os.environ.get("STREAMDUEL_FAULTS") == "full"
"""Whether the tests in `tests/faults` run at full length, as in `make faults`."""

EXTERNAL_SECONDS = 10.0  # the broker runs already; ten seconds allow for a slow name lookup
DOCKER_PING_SECONDS = 3.0  # an engine answers in milliseconds; one may hang
CONTAINER_SECONDS = 120.0  # as for local Java, and half a minute for the container

NO_BROKER = "no Kafka broker is available for this test"
BROKER_USED = pytest.StashKey[str]()
WAYS_OUT = f"""\
Any one of these gives them a broker:
  1. set {EXTERNAL}=host:port to a running Apache Kafka 4;
  2. start a Docker engine: the tests run the image apache/kafka in it;
  3. install Java 17 or newer and Maven: the tests fetch Apache Kafka once and run it here."""


CLIENT = os.environ.get("STREAMDUEL_TEST_CLIENT", "kafka-python")
"""The `source.client` of the services that tests start, where a test does not try both."""

CLIENTS = ("kafka-python", "confluent")

on_both_clients = pytest.mark.parametrize("client", CLIENTS, indirect=True)
"""Runs a test with each of streamduel's clients of Kafka."""


@pytest.fixture
def client(request: pytest.FixtureRequest) -> str:
    """The `source.client` of this test: `CLIENT`, and each of them with `on_both_clients`."""
    chosen: str = getattr(request, "param", CLIENT)
    return chosen


class Broker(Protocol):
    """A running broker of any kind."""

    @property
    def can_restart(self) -> bool:
        """Whether the tests own the broker, and may stop and kill it."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect, the same after every restart."""

    def restart(self, *, kill: bool = False) -> None:
        """Stop the broker (or kill it), start it with the same data, return when it answers."""

    def close(self) -> None:
        """Release what was started for the broker."""


class ExternalKafka:
    """The broker of STREAMDUEL_TEST_KAFKA; the tests must not restart it."""

    can_restart: ClassVar[bool] = False

    def __init__(self) -> None:
        self.bootstrap_servers = os.environ.get(EXTERNAL, "")
        if not self.bootstrap_servers:
            raise BrokerUnavailableError("not set")
        if not re.fullmatch(r".+:\d+", self.bootstrap_servers):
            raise BrokerUnavailableError(f"{self.bootstrap_servers!r} is not host:port")
        wait_for_broker(self.bootstrap_servers, EXTERNAL_SECONDS)

    def restart(self, *, kill: bool = False) -> NoReturn:
        """Refuse.

        Raises:
            RuntimeError: always.
        """
        verb = "kill" if kill else "restart"
        raise RuntimeError(f"tests must not {verb} the broker of {EXTERNAL}")

    def close(self) -> None:
        """Leave the broker as it is."""


class ContainerKafka:
    """The image `apache/kafka`, with the settings and the version of the local broker."""

    can_restart: ClassVar[bool] = True

    def __init__(self) -> None:
        self._container, self.bootstrap_servers = _kafka_container(_docker_host())
        try:
            self._container.start()
            wait_for_broker(self.bootstrap_servers, CONTAINER_SECONDS)
        except Exception as error:  # docker, requests and testcontainers have no common base
            self.close()
            raise BrokerUnavailableError(f"{self._container.image}: {error}") from error

    def restart(self, *, kill: bool = False) -> None:
        """Stop the broker (or kill it), start it with the same data, return when it answers."""
        container = self._container.get_wrapped_container()
        if kill:
            container.kill()
            container.start()
        else:
            container.restart(timeout=int(STOP_SECONDS))
        wait_for_broker(self.bootstrap_servers, CONTAINER_SECONDS)

    def close(self) -> None:
        """Remove the container."""
        self._container.stop()


def _docker_host() -> str:
    """Return the address of the machine of the Docker engine, once the engine has answered."""
    with warnings.catch_warnings():
        # The docker client does not close a socket without an answer.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            docker = DockerClient(timeout=int(DOCKER_PING_SECONDS))
            docker.client.ping()
        except Exception as error:
            reason = str(error)
        else:
            docker.client.close()
            return docker.host().replace("localhost", "127.0.0.1")  # the name may mean ::1
        gc.collect()
    raise BrokerUnavailableError(f"no engine answers: {reason}")


def _kafka_container(host: str) -> tuple[DockerContainer, str]:
    # Clients are told this port, so it is the same inside the container and outside.
    port = free_port()
    properties = broker_properties(
        port=port,
        controller_port=port - 1,
        bind="0.0.0.0",
        advertise=host,
        data="/tmp/kafka-data",
    )
    variables = {f"KAFKA_{key.upper().replace('.', '_')}": text for key, text in properties.items()}
    container = DockerContainer(f"apache/kafka:{kafka_version()}", env=variables)
    return container.with_bind_ports(port, port), f"{host}:{port}"


def obtain_broker() -> tuple[Broker | None, str]:
    """Return the first available broker, if any, and why those before it are not available."""
    reasons: list[str] = []
    for way, connect in ((EXTERNAL, ExternalKafka), ("Docker", ContainerKafka), ("Java", _local)):
        try:
            return connect(), "; ".join(reasons)
        except BrokerUnavailableError as error:
            reasons.append(f"{way}: {error}")
    return None, "; ".join(reasons)


def _local() -> LocalKafka:
    return LocalKafka().__enter__()


def without_broker(reason: str) -> NoReturn:
    """Skip a test that needs a broker, or fail it where one is required."""
    sentence = f"{NO_BROKER} ({reason})"
    if any(os.environ.get(name, "").lower() in {"1", "true"} for name in ("CI", REQUIRE)):
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


@pytest.fixture
def own_broker() -> Iterator[LocalKafka]:
    """A broker for one test, which may kill it; needs Java."""
    try:
        broker = _local()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """A broker for the whole session; each test has topics of its own."""
    broker, passed_over = obtain_broker()
    if broker is None:
        without_broker(passed_over)
    used = f"{type(broker).__name__} on {broker.bootstrap_servers}"
    pytestconfig.stash[BROKER_USED] = f"{used} ({passed_over})" if passed_over else used
    yield broker
    broker.close()


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Topics(Protocol):
    """Creates a topic and returns its unique name."""

    def __call__(self, partitions: int = 4, compacted: bool = False, **configs: object) -> str:
        """Create it; `segment_ms=100` sets the topic's `segment.ms`."""


def make_topics(servers: str, test: str, created: list[str]) -> Topics:
    """Return a function that creates topics on these servers, and appends their names."""

    def create(partitions: int = 4, compacted: bool = False, **configs: object) -> str:
        name = f"{re.sub(r'[^a-z0-9]+', '-', test.lower())[:80]}-{uuid.uuid4().hex[:8]}"
        # Records of the tests are dated in the past: by default, Kafka deletes them after a while.
        settings = {"retention.ms": "-1"}
        settings |= {key.replace("_", "."): _setting(value) for key, value in configs.items()}
        if compacted:
            settings["cleanup.policy"] = "compact"
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics({name: {"num_partitions": partitions, "configs": settings}})
            admin.wait_for_topics([name], timeout_ms=180_000)  # 10 s by default
        created.append(name)
        return name

    return create


@pytest.fixture
def topics(kafka: Broker, request: pytest.FixtureRequest) -> Iterator[Topics]:
    """A function that creates topics for this test."""
    created: list[str] = []
    yield make_topics(kafka.bootstrap_servers, request.node.name, created)
    # Also on a broker of the tests: with a thousand topics it takes a minute to start again.
    if created:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.delete_topics(created, raise_errors=False)  # a test may delete its own


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[LocalCluster]:
    """Three brokers for the whole session (with xdist: of a worker); needs Java."""
    try:
        cluster = LocalCluster({} if FULL else QUICK_FAILOVER).__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(running_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """Three brokers, all of which run when the test begins; the test may do anything to them."""
    yield running_cluster
    running_cluster.heal()


@pytest.fixture
def cluster_topics(cluster: LocalCluster, request: pytest.FixtureRequest) -> Topics:
    """A function that creates topics on the cluster: three replicas, two must acknowledge."""
    return make_topics(cluster.bootstrap_servers, request.node.name, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the broker, or every test that was not run without one and how to get one."""
    if BROKER_USED in config.stash:
        terminalreporter.line(f"Kafka: {config.stash[BROKER_USED]}")
    missed = [
        report.nodeid
        for outcome in ("skipped", "error")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "setup" and NO_BROKER in report.longreprtext
    ]
    if not missed:
        return
    title = f"NOT RUN without a Kafka broker: {len(missed)}"
    terminalreporter.section(title, red=True, bold=True)
    for nodeid in missed:
        terminalreporter.line(nodeid, red=True)
    terminalreporter.line(WAYS_OUT)
