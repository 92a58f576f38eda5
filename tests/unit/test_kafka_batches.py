"""Batches of records from Kafka: every codec, bombs, broken data, and headers."""

from __future__ import annotations

import gzip
import tracemalloc
from types import SimpleNamespace
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard
from kafka import TopicPartition
from kafka.errors import CorruptRecordError, UnsupportedCodecError
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from streamduel.kafka_batches import bound_reads
from streamduel.kafka_codecs import decompressed
from streamduel.records import Rejected

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
COMPRESSED = [pytest.param(number, id=name) for name, number in CODECS.items() if number]
LIMIT = 2**20
MB = 2**20


def batch(
    values: list[bytes], codec: int = 0, *, first: int = 0, magic: int = 2, headers: Any = None
) -> bytes:
    builder = MemoryRecordsBuilder(magic, codec, 2**30, offset=0)
    for value in values:
        assert builder.append(1_000, b"search", value, headers) is not None
    builder.close()
    found = bytearray(builder.buffer())
    # The broker sets the offset: of the first record, and in the old formats of the last one.
    found[:8] = (first if magic == 2 else first + len(values) - 1).to_bytes(8, "big")
    return bytes(found)


def fetched(data: bytes, start: int = 0, limit: int = LIMIT, room: int = 2**40) -> Any:
    """The records of a fetch, as kafka-python reads them."""
    fetcher = SimpleNamespace(fetched_records=None, _append=None)
    bound_reads(SimpleNamespace(_fetcher=fetcher), limit, room)
    return fetcher.PartitionRecords(start, TopicPartition("clicks", 0), MemoryRecords(data))


def read(data: bytes, start: int = 0, limit: int = LIMIT) -> list[tuple[int, Any]]:
    records = fetched(data, start, limit).take(10**6)
    return [(record.offset, record.value) for record in records]


@pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))
def test_a_batch_of_each_codec_is_read(codec: int) -> None:
    values = [b"%d" % n * 50 for n in range(20)]
    data = batch(values, codec, first=7)
    assert read(data) == list(enumerate(values, 7))
    assert read(data, start=20) == list(enumerate(values, 7))[13:]


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_batch_of_an_old_format_is_read(codec: int, magic: int) -> None:
    if (codec, magic) == (3, 0):
        return  # needs the faulty checksum of Kafka 0.9
    values = [b"%d" % n * 50 for n in range(20)]
    first = 7 if magic else 0  # format 0 has absolute offsets inside
    found = read(batch(values, codec, first=first, magic=magic))
    assert found == list(enumerate(values, first))


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("start", [0, 5, 9])
def test_a_bomb_becomes_one_refused_record_at_its_last_offset(codec: int, start: int) -> None:
    bomb = batch([b"[" * MB] * 5, codec, first=4)
    data = batch([b"before"] * 4) + bomb + batch([b"after"], first=9)
    found = [each for each in read(data, start) if each[1] not in (b"before", b"after")]
    if start > 8:
        assert found == []
        return
    [(offset, verdict)] = found
    assert offset == 8
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "too_large"
    assert verdict.sentence == (
        f"the batch of offsets 4 to 8 has {len(bomb)} compressed bytes and more than {LIMIT} "
        "decompressed ones, as many as limits.max_batch_bytes allows; its records are skipped."
    )
    assert read(data, start)[-1] == (9, b"after")


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_a_bomb_in_an_old_format_is_refused(codec: int) -> None:
    [(offset, verdict)] = read(batch([b"[" * MB] * 3, codec, first=4, magic=1))
    assert (offset, verdict.reason) == (6, "too_large")


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_takes_little_more_memory_than_the_limit(codec: int) -> None:
    compress = {
        1: gzip.compress,
        2: snappy.compress,
        3: lambda text: lz4.frame.compress(text, block_linked=False),
        4: lambda text: zstandard.ZstdCompressor().compress(text),
    }[codec]
    bomb = compress(bytes(256 * MB))
    tracemalloc.start()
    try:
        with pytest.raises(Exception, match=r"^$"):
            decompressed(codec, bomb, 8 * MB)
        assert tracemalloc.get_traced_memory()[1] < 24 * MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("damage", ["cut", "garbage", "middle"])
def test_broken_data_becomes_one_refused_record(codec: int, damage: str) -> None:
    values = [bytes([n]) * 40_000 for n in range(10)]
    data = bytearray(batch(values, codec, first=4))
    body = slice(61, len(data))
    if damage == "cut":
        del data[-10:]
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
    elif damage == "garbage":
        data[body] = b"\x01" * (len(data) - 61)
    else:
        place = (61 + len(data)) // 2
        data[place : place + 20] = b"\xff" * 20
    found = read(bytes(repaired(data)))
    assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
    offset, verdict = found[-1]
    assert offset == 13
    if not isinstance(verdict, Rejected):
        return  # only a checksum of the codec was damaged, and nothing of the records
    assert verdict.reason == "invalid_record"
    first = 4 + len(found) - 1
    assert f"the batch of offsets {first} to 13 cannot be read" in verdict.sentence
    assert found[:-1] == list(enumerate(values, 4))[: len(found) - 1]


def repaired(data: bytearray) -> bytearray:
    """The batch with a right checksum."""
    from kafka.record.util import calc_crc32c  # noqa: PLC0415

    data[17:21] = calc_crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    return data


def test_a_wrong_checksum_is_an_error_once_per_fetch() -> None:
    data = batch([b"good"]) + batch([b"bad" * 100], 1, first=1)[:-1] + b"?"
    records = fetched(data)
    assert [record.value for record in records.take(10)] == [b"good"]
    with pytest.raises(CorruptRecordError, match="crc"):
        records.take(10)
    assert not records  # drained, so that the next poll fetches from the batch on


def test_headers_are_not_kept() -> None:
    data = batch([b"value"], headers=[("", b"")] * 300_000)
    tracemalloc.start()
    try:
        [record] = fetched(data).take(10)
        assert tracemalloc.get_traced_memory()[1] < 4 * MB
    finally:
        tracemalloc.stop()
    assert (record.value, record.headers) == (b"value", [])


def test_a_poll_ends_when_its_bytes_are_full() -> None:
    data = batch([bytes(100_000)] * 50)
    records = fetched(data, room=250_000)
    assert len(records.take(1000)) == 3
    assert [record.offset for record in records.take(1)] == [3]


def test_an_unknown_codec_is_an_error() -> None:
    with pytest.raises(UnsupportedCodecError, match="number 7"):
        decompressed(7, b"", 10)
