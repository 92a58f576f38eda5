"""Interleaving the lists of two rankers, with the same result for the same search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random, SystemRandom
from typing import Final, Generic, NamedTuple

from streamduel.client.assignment import Draw, not_a_key, stable_number
from streamduel.errors import InterleavingError, nearest, shown
from streamduel.interleaving import CHANCES, INTERLEAVINGS
from streamduel.interleaving.base import Document, RandomBits, Team, check_ids, check_unique

_OTHER: Final[dict[Team, Team]] = {"a": "b", "b": "a", None: None}


class Merged(NamedTuple, Generic[Document]):
    """An interleaved list: its documents from the top, each once, and what is known of each rank.

    A team is the side that a click counts for; None: neither. A chance is the probability that the
    document came from side a, where the method knows it; for the credit function `probabilistic`.
    """

    docs: list[Document]
    teams: list[Team]
    chances: list[float | None] | None = None


class Interleaver:
    """Interleaves the lists of the two rankers of a draw.

    **One search, one list.** With a `sticky_key`, the list depends on the key, the pair in either
    order, the seed and the two rankings alone: page 2 of a search fits page 1 on every instance of
    the service. The key should identify the search, such as the impression's id or
    `f"{session} {query}"`. Let `length` cover all pages, and show a slice of the list:

    >>> interleaver = Interleaver(length=6)
    >>> merged = interleaver.merge(Draw("x", "y"), "abcdef", "fedcba", sticky_key="s1 shoes")
    >>> merged.docs[:3], merged.docs[3:]
    (['f', 'a', 'b'], ['e', 'c', 'd'])
    >>> merged.teams
    ['b', 'a', 'a', 'b', 'a', 'b']

    Args:
        method: a name of `streamduel.interleaving.INTERLEAVINGS`.
        length: documents to show at most.
        seed: the seed of merges without a key. Without a seed they use the operating system's
            randomness, in forked processes too.

    Raises:
        InterleavingError: there is no such method, it does not allow the length, or it needs a
            package that is not installed.
    """

    def __init__(
        self, method: str = "team_draft", length: int = 10, seed: int | None = None
    ) -> None:
        if not isinstance(method, str) or method not in INTERLEAVINGS:
            hint = nearest(str(method), INTERLEAVINGS) or f"; there are {', '.join(INTERLEAVINGS)}."
            raise InterleavingError(f"unknown interleaving method {shown(method)}{hint}")
        self._method = method
        self._length = length
        self._seed = seed
        self._bits: RandomBits = SystemRandom() if seed is None else Random(seed)  # noqa: S311
        INTERLEAVINGS[method]([], [], length, self._bits)  # checks the length

    def merge(
        self,
        draw: Draw,
        list_a: Sequence[Document],
        list_b: Sequence[Document],
        sticky_key: str | None = None,
    ) -> Merged[Document]:
        """Interleave two lists; of a ranker served alone, the upper part of its list.

        Args:
            draw: the pair of rankers.
            list_a: document ids of ranker `draw.a`, the best first.
            list_b: document ids of ranker `draw.b`; unused where it is the same ranker.
            sticky_key: the key of the search, such as the impression's id.

        Raises:
            InterleavingError: the lists cannot be interleaved, such as when one has a document
                twice; or the key is no string.
        """
        if sticky_key is not None and not isinstance(sticky_key, str):
            raise InterleavingError(not_a_key(sticky_key))
        if draw.alone:
            check_ids("list_a", list_a)  # a pair may be next
            docs = list(islice(list_a, self._length))
            return Merged(docs, [None] * len(docs))
        check_unique("list_a", list_a)  # here they have the caller's names
        check_unique("list_b", list_b)
        # Equal keys give a pair the same list in either order of its sides; only teams are swapped.
        is_swapped = draw.b < draw.a
        first, second = (list_b, list_a) if is_swapped else (list_a, list_b)
        bits = self._bits
        if sticky_key is not None:
            # Without the epoch: the same pair of the next epoch gives the same list.
            parts = (self._seed, self._method, *sorted((draw.a, draw.b)), sticky_key)
            bits = Random(stable_number(*parts, size=16))  # noqa: S311 - not for secrets
        made = INTERLEAVINGS[self._method](first, second, self._length, bits)
        teams = [_OTHER[team] for team in made.teams] if is_swapped else made.teams
        chances = CHANCES.get(self._method)
        return Merged(made.docs, teams, chances and chances(list_a, list_b, made.docs))
