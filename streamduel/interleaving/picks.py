"""What a side may still pick: a ranking without the documents that are shown already."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Generic

from streamduel.interleaving.interleaved import Document


class Picks(Generic[Document]):
    """The documents of a ranking that are not shown yet, the topmost first.

    It looks at each document of the ranking a few times at most, however often it is asked.

    Args:
        ranking: document ids, the best first.
        shown: those in the list, live: whoever adds to it takes the document away here.
    """

    def __init__(self, ranking: Sequence[Document], shown: Container[Document]) -> None:
        self._ranking = ranking
        self._shown = shown
        self._rank = 0

    def left(self) -> bool:
        """Whether there is one."""
        self._rank = self._next(self._rank)
        return self._rank < len(self._ranking)

    def top(self) -> Document:
        """The topmost of them; asked only after `left`."""
        return self._ranking[self._rank]

    def has_another(self) -> bool:
        """Whether there is one more of them below the topmost; asked only after `left`."""
        return self._next(self._rank + 1) < len(self._ranking)

    def _next(self, rank: int) -> int:
        """The first rank from this one down whose document is not shown yet."""
        while rank < len(self._ranking) and self._ranking[rank] in self._shown:
            rank += 1
        return rank
