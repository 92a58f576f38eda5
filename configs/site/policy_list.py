"""A hook of mkdocs: the page of the policies' API lists every registered policy."""

from __future__ import annotations

from typing import Any, Final

from mkdocs.structure.pages import Page

from streamduel import policies

PAGE: Final = "api/policies.md"
MARK: Final = "<!-- every policy: configs/site/policy_list.py -->"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace the mark by an entry for each policy."""
    if page.file.src_uri != PAGE:
        return markdown
    assert MARK in markdown, f"{PAGE} has lost its mark"
    return markdown.replace(MARK, "\n\n".join(map(_entry, policies.names())))


def _entry(name: str) -> str:
    policy = policies.get(name)
    return f"::: {policy.__module__}.{policy.__qualname__}\n    options:\n      members: false"
