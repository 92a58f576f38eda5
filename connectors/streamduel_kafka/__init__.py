"""Apache Kafka: the log, the outputs and the snapshots in topics, exactly once by transactions."""

from streamduel_kafka.plugin import KafkaConnector

connector = KafkaConnector()

__all__ = ["connector"]
