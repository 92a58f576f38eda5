"""The home of an experiment is the partition of Kafka's own producers."""

import pytest
from kafka.partitioner.default import murmur2

from streamduel_kafka.partitions import home_partition

# From Apache Kafka's own UtilsTest.testMurmur2.
JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize(("text", "signed"), JAVA.items())
def test_as_java_hashes(text: str, signed: int) -> None:
    assert murmur2(text.encode()) == signed % 2**32
    for partitions in (1, 4, 12, 100):
        # Java: Utils.toPositive(murmur2(key)) % partitions
        assert home_partition(text, partitions) == (signed & 0x7FFFFFFF) % partitions


def test_names_are_utf8() -> None:
    assert home_partition("Größe", 1000) == (murmur2("Größe".encode()) & 0x7FFFFFFF) % 1000
