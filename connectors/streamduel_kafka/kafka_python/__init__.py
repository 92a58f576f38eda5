"""The client kafka-python: pure Python, with bounded memory for every codec."""

from streamduel_kafka.kafka_python.admin import open_admin
from streamduel_kafka.kafka_python.consumer import open_consumer
from streamduel_kafka.kafka_python.producer import open_producer

__all__ = ["open_admin", "open_consumer", "open_producer"]
