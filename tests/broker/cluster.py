"""Three nodes of Apache Kafka on this machine's Java, each a broker and a controller (KRaft).

Every topic, those of the group and transaction coordinators included, has three replicas, two of
which must acknowledge a write. Clients reach each node directly, or through a `Proxy` of its own.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final, Self

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from tests.broker.local_kafka import LocalKafka, free_port, new_cluster_id
from tests.broker.properties import cluster_properties
from tests.broker.proxy import Proxies

NODES: Final = 3

HEAP_MB: Final = 256  # the data of a test is in the page cache; one node alone needs 100

OFFSETS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
"""Topics with one partition each: its leader is the coordinator of every group and transaction."""


class LocalCluster:
    """A cluster whose nodes can be killed, stopped, paused and restarted one by one.

    Attributes:
        nodes: the nodes; number 0 has the node id 1.
        proxies: the network between the nodes and clients of `proxied_servers`.

    Args:
        overrides: properties that replace those of `cluster_properties` on every node.
    """

    can_restart: ClassVar[bool] = True

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        direct, behind, controllers = ([free_port() for _ in range(NODES)] for _ in range(3))
        self.proxies = Proxies([("127.0.0.1", port) for port in behind])
        cluster_id = new_cluster_id()
        self.nodes = [
            LocalKafka(
                cluster_properties(
                    node, direct, behind, self.proxies.ports, controllers
                ) | dict(overrides or {}),
                direct[node], cluster_id, HEAP_MB,
            )
            for node in range(NODES)
        ]  # fmt: skip

    @property
    def bootstrap_servers(self) -> str:
        """The nodes' own addresses, separated by commas."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    @property
    def proxied_servers(self) -> str:
        """The addresses of the proxies; a client that starts there never leaves them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.proxies.ports)

    def __enter__(self) -> Self:
        try:
            self.proxies.open()
            with ThreadPoolExecutor(NODES) as pool:
                list(pool.map(LocalKafka.launch, self.nodes))
            for node in self.nodes:
                node.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def leader(self, topic: str, partition: int = 0) -> int:
        """The number of the node that leads a partition, as seen by a node that runs."""
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers.split(",")) as admin:
            (found,) = admin.describe_topics([topic])
        at = next(each for each in found["partitions"] if each["partition_index"] == partition)
        return int(at["leader_id"]) - 1

    def create_unreplicated(self, topic: str, nodes: Sequence[int]) -> None:
        """Create a topic with a partition for each of these nodes, which has its only replica."""
        new = NewTopic(
            topic, -1, -1,
            replica_assignments={at: [node + 1] for at, node in enumerate(nodes)},
            topic_configs={"min.insync.replicas": "1", "retention.ms": "-1"},
        )  # fmt: skip
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers.split(",")) as admin:
            admin.create_topics([new], wait_for_metadata=True)

    def heal(self) -> None:
        """Make the network whole, and start and resume the nodes that do not run."""
        self.proxies.heal()
        for node in self.nodes:
            node.resume()
            if node.pid is None:
                node.launch()
        for node in self.nodes:
            node.wait_until_ready()

    def restart(self, *, kill: bool = False) -> None:
        """Restart one node after another, each when the one before it answers."""
        for node in self.nodes:
            node.restart(kill=kill)

    def close(self) -> None:
        """Kill the nodes and remove their data."""
        for node in self.nodes:
            node.close()
        self.proxies.close()
