"""Batches of records from Kafka, read within a bound of memory; for the service and the client.

A subclass of private parts of kafka-python, written for 3.0.12, because of these defects of it:

- it decompresses a batch whole, however large it gets: 400 kB can fill any memory;
- it returns as many records from one poll as `max_poll_records`, however large they are;
- it makes tuples of the headers of a record, which take 32 times the bytes of empty headers;
- data that cannot be decompressed raises the exception of the codec, which no caller expects;
- after an error within a fetch, the next poll never returns.

What is wrong in the log is the same for every reader, so it is skipped, with one record that says
so: a batch that is too large, or whose data is broken. A wrong checksum is damage of a disk or of
the network, which another replica does not have: it raises CorruptRecordError.
"""

# mypy: disable-error-code="misc, has-type"
# The attributes of untyped bases.

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.memory_records import MemoryRecords
from kafka.record.util import decode_varint

from streamduel.kafka_codecs import CODECS, BrokenError, TooLargeError, decompressed
from streamduel.records import Rejected

MAX_POLL_BYTES: Final = 4 * 2**20
"""Bytes of records after which a poll ends; it exceeds this by one record at most. 5,000 usual
records have 1 MB. With 20 ms per MB, folding so much takes less than 0.1 s."""

NO_TIMESTAMP: Final = -1


class _Refusals:
    """The records that stand for what was skipped.

    Attributes:
        limit: bytes that a batch may have, decompressed.
        found: the verdicts by offset, for the records whose value is still missing.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.found: dict[int, Rejected] = {}

    def too_large(self, first: int | None, last: int, size: int) -> DefaultRecord:
        """The record for a batch with more than `limit` bytes."""
        return self._record(
            last,
            Rejected(
                "too_large",
                f"{_batch(first, last)} has {size} compressed bytes and more than {self.limit} "
                "decompressed ones, as many as limits.max_batch_bytes allows; its records are "
                "skipped.",
            ),
        )

    def broken(self, first: int | None, last: int, codec: int) -> DefaultRecord:
        """The record for a batch whose data cannot be read, or for the rest of one."""
        what = f"{CODECS[codec][0]} data" if codec in CODECS else "data"
        return self._record(
            last,
            Rejected(
                "invalid_record",
                f"{_batch(first, last)} cannot be read: its {what} is broken, though its checksum "
                "is right; its records are skipped.",
            ),
        )

    def _record(self, offset: int, verdict: Rejected) -> DefaultRecord:
        self.found[offset] = verdict
        return DefaultRecord(0, offset, NO_TIMESTAMP, 0, None, None, [])


def _batch(first: int | None, last: int) -> str:
    return f"the batch of offsets {first} to {last}" if first is not None else (
        f"the batch up to offset {last}"
    )  # fmt: skip


class _Batch(DefaultRecordBatch):
    """A batch of the present format; its iteration raises nothing."""

    __slots__ = ("_ended", "_next", "_refusals")

    def __init__(self, buffer: Any, refusals: _Refusals) -> None:
        super().__init__(buffer)
        self._refusals = refusals
        self._ended = False
        self._next = self.base_offset

    def __iter__(self) -> Iterator[DefaultRecord]:
        try:
            self._maybe_uncompress()
        except TooLargeError:
            size = self.size_in_bytes
            return iter([self._refusals.too_large(self.base_offset, self.last_offset, size)])
        except BrokenError:
            return iter([self._broken()])
        return self

    def _maybe_uncompress(self) -> None:
        codec = self.compression_type
        if codec and not self._decompressed:
            data = bytes(memoryview(self._buffer)[self._pos :])
            self._buffer = decompressed(codec, data, self._refusals.limit)
            self._pos = 0
        self._decompressed = True

    def __next__(self) -> DefaultRecord:
        if self._ended:
            raise StopIteration
        try:
            record = super().__next__()
        except CorruptRecordError:
            self._ended = True
            if self._next > self.last_offset:
                raise StopIteration from None  # nothing is lost
            return self._broken()
        self._next = record.offset + 1
        return record

    def _broken(self) -> DefaultRecord:
        return self._refusals.broken(self._next, self.last_offset, self.compression_type)

    def _read_msg(self, decode_varint: Callable[..., Any] = decode_varint) -> DefaultRecord:
        """The next record, without its headers."""
        if self.is_control_batch:  # the broker's own, and never delivered
            return super()._read_msg()
        buffer = self._buffer
        length, start = decode_varint(buffer, self._pos)
        end = start + length
        delta, place = decode_varint(buffer, start + 1)  # after the attributes, which are unused
        offset, place = decode_varint(buffer, place)
        size, place = decode_varint(buffer, place)
        key = value = None
        if size >= 0:
            key = bytes(buffer[place : place + size])
            place += size
        size, place = decode_varint(buffer, place)
        if size >= 0:
            value = bytes(buffer[place : place + size])
            place += size
        if place > end or end > len(buffer):
            raise CorruptRecordError("the record is longer than it says")
        self._pos = end
        kind = self.timestamp_type
        time = self.max_timestamp if kind == self.LOG_APPEND_TIME else self.first_timestamp + delta
        return DefaultRecord(length, self.base_offset + offset, time, kind, key, value, [])


class _LegacyBatch(LegacyRecordBatch):
    """A message of the formats 0 and 1, which may contain others; its iteration raises nothing."""

    __slots__ = ("_refusals",)

    def __init__(self, buffer: Any, magic: int, refusals: _Refusals) -> None:
        super().__init__(buffer, magic)
        self._refusals = refusals

    def __iter__(self) -> Iterator[Any]:
        delivered, last = -1, self.base_offset
        try:
            for record in super().__iter__():
                yield record
                delivered = record.offset
        except TooLargeError:
            yield self._refusals.too_large(None, last, self.size_in_bytes)
        except (BrokenError, CorruptRecordError, AssertionError, LookupError, struct.error):
            if delivered < last:
                yield self._refusals.broken(None, last, self.compression_type)

    def _decompress(self, key_offset: int) -> bytearray:
        _, data = self._read_key_value(key_offset)
        if data is None:
            raise BrokenError
        return decompressed(self.compression_type, data, self._refusals.limit)


class _Batches(MemoryRecords):
    """The batches of one fetch from a partition."""

    __slots__ = ("_refusals",)

    def __init__(self, records: MemoryRecords, refusals: _Refusals) -> None:
        super().__init__(records._buffer)
        self._refusals = refusals

    def next_batch(self) -> _Batch | _LegacyBatch | None:
        """The next batch; None at the end."""
        batch = self._next_slice
        if batch is None:
            return None
        if len(batch) < self.MIN_SLICE:
            raise CorruptRecordError(f"{len(batch)} bytes are too few for a batch")
        self._cache_next()
        magic = batch[self.MAGIC_OFFSET]
        if magic < 2:
            return _LegacyBatch(batch, magic, self._refusals)
        return _Batch(batch, self._refusals)


class _Room:
    """The bytes that one poll may still return."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most


class _PartitionRecords(Fetcher.PartitionRecords):
    """The records of one fetch from a partition."""

    def __init__(self, *arguments: Any, limit: int, room: _Room, **options: Any) -> None:
        self._refusals = _Refusals(limit)
        self._room = room
        super().__init__(*arguments, **options)

    def _unpack_records(self, at: Any, records: MemoryRecords, *others: Any) -> Iterator[Any]:
        unpacked: Iterator[Any] = super()._unpack_records(
            at, _Batches(records, self._refusals), *others
        )
        return unpacked

    def take(self, n: int) -> list[Any]:
        """The next records: `n`, or fewer when they fill the room."""
        error, self._next_inline_exception = self._next_inline_exception, None
        records: list[Any] = []
        before, end = self.bytes_read, self.bytes_read + self._room.left
        try:
            if error is None:
                for record in itertools.islice(self.record_iterator, n):
                    records.append(record)
                    if self.bytes_read >= end:
                        break
        except Exception as raised:
            error = raised
        self._room.left -= self.bytes_read - before
        if error is not None:
            if not records:
                self.drain()  # the iterator has ended: the next poll fetches from here once more
                raise error
            self._next_inline_exception = error
        return self._with_verdicts(records) if self._refusals.found else records

    def _with_verdicts(self, records: list[Any]) -> list[Any]:
        found = self._refusals.found
        return [
            record._replace(value=found.pop(record.offset)) if record.offset in found else record
            for record in records
        ]


def bound_reads(consumer: Any, max_batch_bytes: int, max_poll_bytes: int = MAX_POLL_BYTES) -> None:
    """Bound the memory that a consumer needs to read.

    Args:
        consumer: kafka-python's, before its first poll.
        max_batch_bytes: a compressed batch with more bytes becomes one record, whose value is a
            `Rejected` and whose offset is that of the batch's last record.
        max_poll_bytes: of records, after which a poll ends.
    """
    fetcher = consumer._fetcher
    room = _Room(max_poll_bytes)
    fetched_records, append = fetcher.fetched_records, fetcher._append

    def bounded_fetched_records(*arguments: Any, **options: Any) -> Any:
        room.left = room.most
        return fetched_records(*arguments, **options)

    def bounded_append(drained: Any, part: Any, max_records: int, update_offsets: bool) -> int:
        taken: int = append(drained, part, max_records, update_offsets)
        return taken if room.left > 0 else max_records  # as many as end the poll

    fetcher.fetched_records = bounded_fetched_records
    fetcher._append = bounded_append
    fetcher.PartitionRecords = partial(_PartitionRecords, limit=max_batch_bytes, room=room)
