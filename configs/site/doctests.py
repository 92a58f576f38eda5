"""An extension of griffe: doctests in docstrings are code blocks on the site.

Without a fence, `>>>` in Markdown would start three nested quotations.
"""

from __future__ import annotations

from typing import Any

from griffe import Extension, Object


class Doctests(Extension):
    """Adds fences around doctests."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by griffe for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with each doctest, up to the next blank line, as a code block."""
    lines: list[str] = []
    inside = False
    for line in docstring.splitlines():
        if not inside and line.startswith(">>>"):
            lines.append("```pycon")
            inside = True
        if inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, *["```"] * inside])
