"""Rankings that count the operations on them, for a check that the work is linear."""

from __future__ import annotations

from typing import Any


class CountedDocument:
    """A document id that counts how often ids are hashed or compared."""

    work = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        CountedDocument.work += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        CountedDocument.work += 1
        return isinstance(other, CountedDocument) and self.number == other.number


class CountedRanking(tuple[CountedDocument, ...]):
    """A ranking that counts how much of it is read; a slice counts its length."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        CountedDocument.work += len(found) if isinstance(key, slice) else 1
        return found
