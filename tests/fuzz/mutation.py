"""Mutations of bytes, from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

TOKENS: Final = (
    b'"', b"\\", b'\\"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"-1", b"0.5",
    b"1e999", b"9" * 30, b"9" * 5000, b"\\ud800", b"\\u0000", b"\xff", b"\xc3\xa4", b"\x00", b" ",
    b'"type":', b'"id":"1",', b'"winner":', b"[[", b"{}", b" - at `$.id`", b"x" * 300, b'"a"',
)  # fmt: skip
"""Pieces of JSON, and what has broken parsers of it."""

MAX_BYTES: Final = 200_000
"""Of a mutated input: above the length from which values are cut in sentences and dead letters."""


def mutants(seeds: Sequence[bytes], seed: int, count: int) -> Iterator[bytes]:
    """So many inputs, each made from one of the seeds by one to six mutations."""
    random = Random(seed)
    for _ in range(count):
        value = random.choice(seeds)
        for _ in range(random.randint(1, 6)):
            value = mutated(value, random.choice(seeds), random)[:MAX_BYTES]
        yield value


def mutated(value: bytes, other: bytes, random: Random) -> bytes:
    """One mutation of a value, perhaps with a part of another one."""
    start = random.randint(0, len(value))
    end = min(len(value), start + random.choice((1, 1, 2, 4, 16, 64)))
    match random.randrange(6):
        case 0:
            piece = random.randbytes(random.randint(1, 4))
        case 1:
            piece = b""
        case 2:
            piece = random.choice(TOKENS)
            end = random.choice((start, end))
        case 3:  # repeat a part, at times very often
            piece = value[start:end] * random.choice((2, 3, 10, 100, 5000))
        case 4:
            place = random.randint(0, len(other))
            piece = other[place : place + random.randint(1, 64)]
        case _:
            piece = random.choice(TOKENS) * random.choice((2, 300, 2000))
            end = start
    return value[:start] + piece + value[end:]
