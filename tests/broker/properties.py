"""The properties of the test broker, and of the nodes of a cluster of them."""

from collections.abc import Sequence
from typing import Final

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # more than a snapshot of hundreds of arms


QUICK_FAILOVER: Final = {
    # A killed node can register again only after its session (9 s by default); six missed
    # heartbeats are enough for a loaded machine.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


def broker_properties(
    *, port: int, controller_port: int, bind: str, advertise: str, data: str
) -> dict[str, str]:
    """Return the properties of a single node: quick to start, as strict as a real cluster.

    Args:
        port: port of the listener for clients.
        controller_port: port of the internal listener.
        bind: address of the listener for clients.
        advertise: address that clients connect to.
        data: directory of the partitions.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"CLIENTS://{bind}:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"CLIENTS://{advertise}:{port}",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        # There is one node, and every partition costs time at start and stop.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
        "log.cleaner.dedupe.buffer.size": "4194304",  # 128 MB by default, a quarter of the heap
        # A test's group has one or two members: no need to wait for more.
        "group.initial.rebalance.delay.ms": "0",
        # Allows short session timeouts in tests (by default at least 6 s).
        "group.min.session.timeout.ms": "500",
        # The open transaction of a killed process blocks readers until it times out; by default the
        # broker checks only every 10 s.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        **QUICK_FAILOVER,
    }


def cluster_properties(
    node: int,
    direct: Sequence[int],
    behind: Sequence[int],
    proxies: Sequence[int],
    controllers: Sequence[int],
) -> dict[str, str]:
    """Return what a node of a cluster has besides `broker_properties`.

    Args:
        node: its number, from 0.
        direct: each node's port for clients and for the other nodes.
        behind: each node's port behind its proxy.
        proxies: the ports of the proxies.
        controllers: each node's port for the quorum of controllers.
    """
    host = "127.0.0.1"
    quorum = (f"{number + 1}@{host}:{port}" for number, port in enumerate(controllers))
    replicas = str(len(direct))
    return {
        "node.id": str(node + 1),
        "controller.quorum.voters": ",".join(quorum),
        "listeners": f"CLIENTS://{host}:{direct[node]},PROXIED://{host}:{behind[node]},"
        f"CONTROLLER://{host}:{controllers[node]}",
        "advertised.listeners": f"CLIENTS://{host}:{direct[node]},PROXIED://{host}:{proxies[node]}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,PROXIED:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "default.replication.factor": replicas,
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "2",
        # Kafka's own: they decide how long a failover takes.
        "broker.session.timeout.ms": "9000",
        "broker.heartbeat.interval.ms": "2000",
    }
