"""Names and results as text; names come from outside."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.report import ExperimentAnalysis
from streamduel.errors import shortened
from streamduel.preference.verdict import at_least

MAX_SHOWN: Final = 40
"""Characters of a name in a sentence or a table."""


def readable(name: str, limit: int = MAX_SHOWN) -> str:
    r"""A name of bounded length, without control characters.

    >>> readable("ltr\x1b[31m"), readable("x" * 50, 5)
    ('ltr\\x1b[31m', 'xxxx…')
    """
    text = "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in name[: 2 * limit]
    )
    return shortened(text, limit) if text.strip() else f"«{text}»"


def verdict(found: ExperimentAnalysis) -> str:
    """The result of an experiment in a sentence."""
    confidence = f"{at_least(found.confidence)} confidence"
    after = f"after {found.duels:,} duels"
    if found.champion is not None:
        wins = "wins" if found.seeks == "condorcet" else "beats the most others, none beats all,"
        return f"{readable(found.champion)} {wins} with {confidence}, {after}."
    if found.no_winner:
        return f"no ranker beats all others (95 % confidence), and none beats the most, {after}."
    ahead = f"; {readable(found.leader)} is ahead" if found.leader else ""
    return f"undecided {after} ({confidence}){ahead}."
