"""Names in CSV files that people open in a spreadsheet."""

from __future__ import annotations

from typing import Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of a cell that a spreadsheet would take for a formula, in an East Asian language also
the wide forms of the signs; an apostrophe makes it text."""


def cell(text: str) -> str:
    """A text as a cell that no spreadsheet computes.

    >>> cell("=HYPERLINK(…)"), cell("bm25")
    ("'=HYPERLINK(…)", 'bm25')
    """
    return f"'{text}" if text.startswith(FORMULA) else text
