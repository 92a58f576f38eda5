"""The codecs of Kafka's batches, decompressed within a bound of memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from kafka.errors import UnsupportedCodecError

STEP_BYTES: Final = 2**20
"""Decompressed at a time: a usual batch has less."""

XERIAL: Final = b"\x82SNAPPY\0"
"""The beginning of the framing in which Java's producers write snappy: 16 bytes with the versions,
then blocks, each after its length."""


class TooLargeError(Exception):
    """The data decompresses to more bytes than are allowed."""


class BrokenError(Exception):
    """The data cannot be decompressed."""


def decompressed(codec: int, data: bytes, limit: int) -> bytearray:
    """Decompress the records of a batch, to `limit` bytes at most.

    Args:
        codec: Kafka's number of the codec, from 1 to 4.
        data: the compressed records.
        limit: in bytes; no more than `STEP_BYTES` beyond it are ever decompressed.

    Raises:
        TooLargeError: there are more bytes.
        BrokenError: the data is not of this codec, or ends too early.
        UnsupportedCodecError: the codec is unknown, or its package is not installed.
    """
    if codec not in CODECS:
        raise UnsupportedCodecError(f"the codec with number {codec} is unknown")
    name, parts = CODECS[codec]
    found = bytearray()
    try:
        for part in parts(data, limit):
            found += part
            if len(found) > limit:
                raise TooLargeError
    except ImportError as missing:
        raise UnsupportedCodecError(
            f"{name} needs a package that is not installed ({missing.name})"
        ) from missing
    except (TooLargeError, MemoryError):
        raise
    except Exception as error:  # each codec has exceptions of its own
        raise BrokenError from error
    return found


def _gzip(data: bytes, _limit: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    while not stream.eof:
        part = stream.decompress(data, STEP_BYTES)
        data = stream.unconsumed_tail
        if not part and not data and not stream.eof:
            raise BrokenError
        yield part
    if stream.unused_data:
        raise BrokenError


def _lz4(data: bytes, _limit: int) -> Iterator[bytes]:
    import lz4.frame  # noqa: PLC0415 - only where it is used, as the other packages

    stream = lz4.frame.LZ4FrameDecompressor()
    while not stream.eof:
        part = stream.decompress(data, max_length=STEP_BYTES)
        data = b""
        if not part and stream.needs_input and not stream.eof:
            raise BrokenError
        yield part
    if stream.unused_data:
        raise BrokenError


def _zstd(data: bytes, _limit: int) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415

    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
        while part := stream.read(STEP_BYTES):
            yield part


def _snappy(data: bytes, limit: int) -> Iterator[bytes]:
    import snappy  # noqa: PLC0415

    total = 0
    for block in _snappy_blocks(data):
        total += _snappy_size(block)
        if total > limit:
            raise TooLargeError
        yield snappy.decompress(block)


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not data.startswith(XERIAL):
        yield data
        return
    place = 16
    while place < len(data):
        (size,) = struct.unpack_from("!I", data, place)
        place += 4
        if size > len(data) - place:
            raise BrokenError
        yield data[place : place + size]
        place += size


def _snappy_size(block: bytes) -> int:
    """The decompressed size, with which a block begins: 7 bits per byte, the lowest first."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise BrokenError


CODECS: Final[dict[int, tuple[str, Callable[[bytes, int], Iterator[bytes]]]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
