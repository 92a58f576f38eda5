"""The properties of the test broker."""

from typing import Final

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # more than a snapshot of hundreds of arms


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
        # A killed node can register again only after its session (9 s by default); six missed
        # heartbeats are enough for a loaded machine.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
