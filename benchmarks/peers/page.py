"""The section of RESULTS.md with the peers: written by its own command, kept by `make bench`."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"


def section(page: Path) -> str:
    """The section with its marks; only the marks if the page has none."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    _, mark, rest = text.partition(BEGIN)
    inner, ended, _ = rest.partition(END)
    return f"{BEGIN}{inner}{END}\n" if mark and ended else f"{BEGIN}\n{END}\n"


def put(page: Path, content: str) -> None:
    """Replace the section, or append it."""
    text = page.read_text(encoding="utf-8")
    new = f"{BEGIN}\n\n{content.strip()}\n\n{END}\n"
    old = section(page)
    text = text.replace(old, new) if old in text else f"{text.rstrip()}\n\n{new}"
    page.write_text(text, encoding="utf-8")
