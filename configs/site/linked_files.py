"""A hook of mkdocs: the site contains the files of the repository that its pages link to.

The pages under docs/ link to files as a reader of the repository needs it: `../CONTRIBUTING.md`,
`../configs/kafka.yaml`, `examples/search_service.py`. Some of these are pages of the site; every
other linked text file becomes a page with its text. The hook rewrites the links. It leaves a dead
link alone, and mkdocs refuses it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

PAGES: Final = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
"""Markdown outside docs/, with its page on the site."""

EQUIVALENTS: Final = {"README.md": "index.md"}
"""Files of the repository whose content another page of the site has."""

LINK: Final = re.compile(r"(?<=\]\()[^)\s#]+")
"""The target of a Markdown link, without its anchor."""

MKDOCS_SUFFIXES: Final = frozenset({".gif", ".jpg", ".md", ".png", ".svg"})
"""Files under docs/ that mkdocs renders; it would offer any other for download."""

LEXERS: Final = {".json": "json", ".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml"}
"""Syntax highlighting by suffix."""

SEARCH: Final = {"api/": {"boost": 0.5}, "files/": {"exclude": True}}
"""Search settings by folder: pages for people come first."""


OWN: Final = ("site.css", "search_offline_iframe-worker.js")
"""The style sheet and the script of the site, in this folder."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and one for every linked file."""
    root = _root(config)
    for own in OWN:
        files.append(File.generated(config, own, abs_src_path=str(Path(__file__).with_name(own))))
    for origin, page_there in PAGES.items():
        files.append(File.generated(config, page_there, abs_src_path=str(root / origin)))
    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for path in _linked(page, root):
            place = _place(path, root)
            if place is not None and files.get_file_from_path(place) is None:
                shown = File.generated(
                    config, place, content=_shown(path, root), inclusion=InclusionLevel.NOT_IN_NAV
                )
                files.append(shown)
                waiting.append(shown)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to pages of the site, and set the search settings of the page."""
    root, here = _root(config), page.file.src_uri
    for folder, search in SEARCH.items():
        if here.startswith(folder):
            page.meta["search"] = search

    def moved(link: re.Match[str]) -> str:
        place = _place(_resolved(page.file, link[0]), root)
        if place is None or files.get_file_from_path(place) is None:
            return link[0]
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    return LINK.sub(moved, markdown)


def _root(config: MkDocsConfig) -> Path:
    return Path(config.docs_dir).parent


def _linked(page: File, root: Path) -> Iterator[str]:
    """The files of the repository that a page links to, as paths from its root."""
    for link in LINK.findall(page.content_string):
        path = _resolved(page, link)
        if (root / path).exists():
            yield path


def _resolved(page: File, link: str) -> str:
    """The target of a link, as a path from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(_origin(page)), unquote(link)))


def _origin(page: File) -> str:
    """The path in the repository of a page of the site."""
    for path, place in PAGES.items():
        if place == page.src_uri:
            return path
    if page.src_uri.startswith("files/"):
        return page.src_uri.removeprefix("files/")
    return f"docs/{page.src_uri}"


def _place(path: str, root: Path) -> str | None:
    """The page on the site of a path in the repository; None if the path does not exist."""
    page = PAGES.get(path) or EQUIVALENTS.get(path)
    if page:
        return page
    if path.startswith("../") or not (root / path).exists():
        return None
    if path.startswith("docs/") and Path(path).suffix in MKDOCS_SUFFIXES:
        return path.removeprefix("docs/")
    return f"files/{path}.md"


def _shown(path: str, root: Path) -> str:
    """A page with the text of a file, or with links to the files of a folder."""
    head = f"# {path}\n\n"
    if (root / path).is_dir():
        inside = sorted(each.name for each in (root / path).iterdir() if each.is_file())
        name = posixpath.basename(path)
        return head + "".join(f"- [{each}]({name}/{each})\n" for each in inside)
    text = (root / path).read_text(encoding="utf-8")
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{head}{fence} {LEXERS.get(Path(path).suffix, 'text')}\n{text}\n{fence}\n"
