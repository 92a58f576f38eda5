"""A real Apache Kafka broker for the tests: an external one, a container, or local Java."""
