"""A real Apache Kafka broker for the tests, from wherever this machine can get one."""
