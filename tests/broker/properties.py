"""The settings of a broker for tests: one node, quick to start, strict as a real cluster."""

from typing import Final

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024  # snapshots of hundreds of rankers, with room


def broker_properties(
    *, port: int, controller_port: int, bind: str, advertise: str, data: str
) -> dict[str, str]:
    """Return the settings of a single node, quick to start and strict as a real cluster.

    Args:
        port: of the listener for clients.
        controller_port: of the listener that the node keeps to itself.
        bind: the address to listen on for clients.
        advertise: the address that clients are told.
        data: the directory for the logs of the partitions.
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
        # There is one node to replicate to, and every partition costs start and stop time.
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
        # A consumer of a test joins a group of one or two: nobody else is worth waiting for.
        "group.initial.rebalance.delay.ms": "0",
        # Lets a test choose how soon a killed worker's partitions move on (6 s at least otherwise).
        "group.min.session.timeout.ms": "500",
        # A killed worker's open transaction blocks committed readers until it is timed out; the
        # default looks for such transactions only every 10 s.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        # A node restarted after a kill may register again only when its former life has expired
        # (9 s by default); six missed heartbeats are still a lot for a loaded machine.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
