"""An extension of griffe: the examples at the end of docstrings are code on the site.

A docstring ends with a doctest as it is, without a heading. In Markdown `>>>` would begin a
quotation in a quotation in a quotation.
"""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


class Doctests(Extension):
    """Puts fences around doctests."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with each doctest, up to the next blank line, as a code block."""
    lines: list[str] = []
    within = False
    for line in docstring.splitlines():
        if not within and line.startswith(">>>"):
            lines.append("```pycon")
            within = True
        if within and not line.strip():
            lines.append("```")
            within = False
        lines.append(line)
    return "\n".join([*lines, *["```"] * within])
