"""Checksums of stored JSON objects: damage is detected before anything of an object is used.

The checksum is the last member of the object, so the text stays JSON that people and programs can
read. It covers every byte of the object without that member.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

_MEMBER: Final = re.compile(rb',"checksum":"(sha256:[0-9a-f]{64})"}')
_LENGTH: Final = len(b',"checksum":"sha256:') + 64 + len(b'"}')


def checksum(text: bytes) -> str:
    """The SHA-256 of a text.

    >>> checksum(b"{}")
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return "sha256:" + hashlib.sha256(text).hexdigest()


def seal(text: bytes) -> bytes:
    """Add the checksum to a JSON object that has at least one member.

    >>> len(seal(b'{"a":1}')) - len(b'{"a":1}')
    85
    """
    return b'%b,"checksum":"%b"}' % (text[:-1], checksum(text).encode())


def is_sealed(text: bytes) -> bool:
    """Whether a text ends with a checksum, right or wrong."""
    return _MEMBER.fullmatch(text[-_LENGTH:]) is not None


def is_intact(sealed: bytes) -> bool:
    """Whether a text ends with the checksum of all the rest of it.

    >>> is_intact(seal(b'{"a":1}')), is_intact(seal(b'{"a":1}').replace(b"1", b"2", 1))
    (True, False)
    """
    found = _MEMBER.fullmatch(sealed[-_LENGTH:])
    return found is not None and found[1].decode() == checksum(sealed[:-_LENGTH] + b"}")


def unsealed(text: bytes) -> bytes:
    """A text without its checksum, if it has one.

    >>> unsealed(seal(b'{"a":1}')), unsealed(b'{"a":1}')
    (b'{"a":1}', b'{"a":1}')
    """
    return text[:-_LENGTH] + b"}" if is_sealed(text) else text
