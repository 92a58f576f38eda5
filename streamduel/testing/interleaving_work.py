"""The work of an interleaving method: the operations on two rankings that count them."""

from __future__ import annotations

import random
from typing import Any, Final

from streamduel.interleaving import Interleave

ORDERS: Final = ("identical", "reversed", "shifted", "disjoint")
"""What the second ranking is to the first."""


class _Document:
    """A document id that counts how often ids are hashed or compared."""

    work = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        _Document.work += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        _Document.work += 1
        return isinstance(other, _Document) and self.number == other.number


class _Ranking(tuple[_Document, ...]):
    """A ranking that counts how much of it is read; a slice counts its length."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        _Document.work += len(found) if isinstance(key, slice) else 1
        return found


def operations(interleave: Interleave, order: str, n: int, length: int) -> int:
    """Operations needed to interleave two rankings of n documents.

    Args:
        interleave: the method.
        order: one of `ORDERS`.
        n: documents of each ranking.
        length: of the list.
    """
    documents = [_Document(number) for number in range(2 * n)]
    up = documents[:n]
    down = {
        "identical": up,
        "reversed": up[::-1],
        "shifted": up[1:] + up[:1],
        "disjoint": documents[n:],
    }[order]
    _Document.work = 0
    shown = interleave(_Ranking(up), _Ranking(down), length, random.Random(3))
    work = _Document.work
    assert len(shown.docs) == min(length, len({*up, *down}))
    return work
