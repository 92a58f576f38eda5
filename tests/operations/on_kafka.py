"""`streamduel run` on Kafka, for faults of a broker."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, Final, Self

from kafka import KafkaAdminClient, KafkaProducer

from tests.operations.running import Service
from tests.operations.users import Users, half_and_half

INSTANCE: Final = "one"


class KafkaService(Service):
    """One process of streamduel on a broker, with its own topics.

    Args:
        folder: for its configuration.
        servers: of the broker.
        experiment: its only one.
    """

    def __init__(self, folder: Path, servers: str, experiment: str) -> None:
        self.servers, self.experiment = servers, experiment
        self.group = f"{experiment}-{uuid.uuid4().hex[:8]}"
        self.topic, *outputs = self.topics = [
            f"{self.group}-{what}"
            for what in ("clicks", "assignments", "dead-letters", "snapshots")
        ]
        source = {
            "connector": "kafka", "bootstrap_servers": servers, "topic": self.topic,
            "group": self.group, "instance": INSTANCE, "create_topics": True,
        }  # fmt: skip
        sink = {"connector": "kafka", "assignments": outputs[0], "dead_letters": outputs[1]}
        others: dict[str, Any] = {
            "source": source, "sink": sink,
            "snapshots": {"connector": "kafka", "topic": outputs[2]},
        }  # fmt: skip
        super().__init__(folder, {experiment: {"arms": ["x", "y"]}}, **others)

    def usurp(self) -> None:
        """Register under the process's transactional id, as a second one would, and disconnect."""
        producer = KafkaProducer(
            bootstrap_servers=self.servers,
            transactional_id=f"streamduel-{self.group}-{INSTANCE}",
            metrics_enabled=False,
        )
        try:
            producer.init_transactions()
        finally:
            producer.close()

    def forget(self) -> None:
        """Delete its topics: the broker is shared."""
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.delete_topics(self.topics)


class Clicks:
    """Writes duels to the topic of a service.

    Args:
        service: which, once it has made its topic.
    """

    def __init__(self, service: KafkaService) -> None:
        self._topic, self._key = service.topic, service.experiment.encode()
        self._users = Users(service.experiment, seed=0)
        self._producer = KafkaProducer(
            bootstrap_servers=service.servers, linger_ms=0, metrics_enabled=False
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def write(self) -> None:
        """Write more duels."""
        for record in half_and_half(self._users, "x", "y", 4):
            self._producer.send(self._topic, json.dumps(record).encode(), key=self._key)
