"""The client confluent-kafka, on librdkafka: several times as fast as kafka-python.

It decompresses batches in C, and only those of zstd within a bound; see docs/security.md.
"""

from streamduel_kafka.confluent.admin import open_admin
from streamduel_kafka.confluent.consumer_opening import open_consumer
from streamduel_kafka.confluent.producer import open_producer

__all__ = ["open_admin", "open_consumer", "open_producer"]
