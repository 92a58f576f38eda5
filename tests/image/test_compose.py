"""The services of configs/compose.yaml close the loop, on a broker with the file's settings.

The broker runs on Java and all services share this machine's network, so addresses differ. Broker
settings, commands, variables, mounts and health checks are those of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.broker.fixture import without_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.local_kafka import LocalKafka, free_port
from tests.image.container import Container, Containers
from tests.image.engine import ROOT, Start

FILE: Final = ROOT / "configs" / "compose.yaml"
SERVICES: Final[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]

FOR_KAFKA: Final = re.compile("KAFKA_(?!HEAP_OPTS)")
"""Variables that are broker settings; the others configure its scripts."""

DUELS: Final = 1000
"""The simulated users produce as many in a second."""

ASK: Final = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"

NOTHING: Final[Mapping[str, str]] = {}


class Network:
    """Maps the file's addresses to ports of this machine."""

    def __init__(self) -> None:
        self.outside = free_port()
        self._ports = {"9092": self.outside, "9093": free_port(), "19092": free_port()}

    def here(self, text: str) -> str:
        """Replace the file's addresses in a text."""
        text = re.sub(r":(9092|9093|19092)\b", lambda found: f":{self._ports[found[1]]}", text)
        return re.sub(r"(kafka|localhost|(?<=//))(?=:\d)", "127.0.0.1", text)


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def broker(network: Network, tmp_path: Path) -> Iterator[LocalKafka]:
    """Apache Kafka with the settings of the service `kafka`."""
    settings = {
        FOR_KAFKA.sub("", name).lower().replace("_", "."): network.here(str(value))
        for name, value in SERVICES["kafka"]["environment"].items()
        if FOR_KAFKA.match(name)
    }
    settings["log.dirs"] = str(tmp_path / "kafka-data")
    try:
        broker = LocalKafka(settings, port=network.outside).__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    yield broker
    broker.close()


def started(name: str, network: Network, variables: Mapping[str, str] = NOTHING) -> Start:
    """The start of a service that runs streamduel's image."""
    service = SERVICES[name]
    mounts = {}
    for volume in service["volumes"]:
        outside, inside, mode = volume.split(":")
        assert mode == "ro"
        mounts[inside] = Path(os.path.normpath(FILE.parent / outside))
    own = service.get("environment", {})
    command = service.get("command")
    return Start(
        command=None if command is None else [network.here(argument) for argument in command],
        entrypoint=service.get("entrypoint"),
        environment={**{key: network.here(value) for key, value in own.items()}, **variables},
        mounts=mounts,
        on_host_network=True,
    )


def duels(streamduel: Container, port: str) -> float:
    """Duels learned, according to the service's metrics."""
    shown = streamduel.execute("python", "-c", ASK, f"http://127.0.0.1:{port}/metrics").stdout
    found = re.search(r'^streamduel_duels_total{experiment="search"} (\S+)$', shown, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.kafka
def test_streamduel_learns_from_simulated_users(
    containers: Containers, network: Network, broker: LocalKafka
) -> None:
    port = str(free_port())
    _, *health = containers.image.health
    with containers.start(
        started("streamduel", network, {"STREAMDUEL_MONITORING__PORT": port})
    ) as streamduel:
        streamduel.until(lambda: streamduel.execute(*health).returncode == 0)
        with containers.start(started("users", network)) as users:
            streamduel.until(lambda: duels(streamduel, port) >= DUELS)
            assert "0 impressions, epoch" in users.log
        streamduel.signal("TERM")
        assert streamduel.ended() == 0, streamduel.log
