"""The demo's users: they type queries and click on what tempts them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamduel.demo.world import USERS, World
from streamduel.policies.base.generator import Generator

_APART: Final = 1 << 100
"""How far the users' part of the seed's random stream is from the world's."""


class Users:
    """One user after the other; equal seeds make equal users.

    Args:
        world: what they search in.
        seed: an integer from 0.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._grades = world.grades
        self._generator = Generator(seed)
        self._generator.skip(_APART)

    def query(self) -> int:
        """What the next user looks for, an index into the queries."""
        return self._generator.below(len(self._grades))

    def clicks(self, query: int, docs: Sequence[int]) -> list[int]:
        """The ranks that a user clicks on, from 0.

        Args:
            query: what was asked for.
            docs: the recipes shown, the first on top.
        """
        grades = self._grades[query]
        return USERS.clicks([grades[doc] for doc in docs], self._generator)
