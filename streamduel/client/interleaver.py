"""Merging the lists of two rankers, the same way for the same search."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random, SystemRandom
from typing import Generic, NamedTuple

from streamduel.client.assignment import Draw
from streamduel.client.stable import stable_number
from streamduel.errors import InterleavingError, nearest
from streamduel.interleaving import CHANCES, INTERLEAVINGS
from streamduel.interleaving.base import Document, RandomBits, Team


class Merged(NamedTuple, Generic[Document]):
    """A list to be shown.

    Attributes:
        docs: the documents, the first on top; none of them twice.
        teams: per rank, for whom a click there speaks; None for nobody.
        chances: per rank, how likely the document was to come from side a, if the method knows; the
            credit function `probabilistic` goes by it.
    """

    docs: list[Document]
    teams: list[Team]
    chances: list[float | None] | None = None


class Interleaver:
    """Merges the lists of the two rankers of a draw.

    **One search, one list.** With a `sticky_key`, the list follows from the key, the pair, the seed
    and the two rankings: page 2 of a search fits its page 1, on whichever instance it is made. The
    key should name the search and not only the session, such as the impression's id or
    `f"{session} {query}"`; else all searches of a session would go by the same coins. Let `length`
    cover all pages that can be turned to, and show a part of the list:

    >>> interleaver = Interleaver(length=6)
    >>> merged = interleaver.merge(Draw("x", "y"), "abcdef", "fedcba", sticky_key="s1 shoes")
    >>> merged.docs[:3], merged.docs[3:]
    (['f', 'a', 'b'], ['e', 'c', 'd'])
    >>> merged.teams
    ['b', 'a', 'a', 'b', 'a', 'b']

    Args:
        method: a name of `INTERLEAVINGS`; `streamduel.interleaving` has them.
        length: how many documents at most.
        seed: of all that is drawn. Without one, merges without a key are as random as the operating
            system can make them, in forked processes too.

    Raises:
        InterleavingError: there is no such method, the length is not for it, or it needs a package
            that is not installed.
    """

    def __init__(
        self, method: str = "team_draft", length: int = 10, seed: int | None = None
    ) -> None:
        if method not in INTERLEAVINGS:
            hint = nearest(method, INTERLEAVINGS) or f"; there are {', '.join(INTERLEAVINGS)}."
            raise InterleavingError(f"unknown interleaving method '{method}'{hint}")
        self._method = method
        self._length = length
        self._seed = seed
        self._bits: RandomBits = SystemRandom() if seed is None else Random(seed)  # noqa: S311
        INTERLEAVINGS[method]([], [], length, self._bits)  # refuses a length that is not for it

    def merge(
        self,
        draw: Draw,
        list_a: Sequence[Document],
        list_b: Sequence[Document],
        sticky_key: str | None = None,
    ) -> Merged[Document]:
        """One list of two; of a ranker that is served alone, the upper part of its own.

        Args:
            draw: whose lists they are.
            list_a: document ids of ranker `draw.a`, the best first.
            list_b: those of `draw.b`; not looked at where it is the same ranker.
            sticky_key: what the list is to follow from, such as the impression's id.

        Raises:
            InterleavingError: the lists cannot be interleaved, such as when one has a document
                twice.
        """
        if draw.alone:
            docs = list(list_a[: self._length])
            return Merged(docs, [None] * len(docs))
        bits = self._bits
        if sticky_key is not None:
            # Not the epoch: a session that draws the same pair from the next one sees no change.
            parts = (self._seed, self._method, draw.a, draw.b, sticky_key)
            bits = Random(stable_number(*parts, size=16))  # noqa: S311 - no secret is made of it
        made = INTERLEAVINGS[self._method](list_a, list_b, self._length, bits)
        chances = CHANCES.get(self._method)
        return Merged(made.docs, made.teams, chances and chances(list_a, list_b, made.docs))
