"""The documentation site: complete, equal to its sources, and without requests to other hosts."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from configs.site import doctests
from streamduel import client, policies, testing
from streamduel.interleaving import credit
from streamduel.testing import duel
from tests.site import ROOT, build
from tests.unit.config.configurations import GOOD, written

MOVED = {
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "benchmarks/RESULTS.md": "benchmarks",
}
"""Pages from outside docs/, with their names on the site."""

SOURCES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / path for path in MOVED)]

BLOCKS = frozenset(
    {"blockquote", "h1", "h2", "h3", "h4", "img", "li", "ol", "pre", "table", "tr", "ul"}
)
"""Block elements. A list or a table that is not recognised becomes a paragraph."""

REQUESTS = {"audio": "src", "iframe": "src", "img": "src", "link": "href", "script": "src"}
"""Elements that a browser fetches automatically, with the attribute of the address."""


class Content(HTMLParser):
    """The block elements of a page, and what a browser fetches for it."""

    def __init__(self, html: str, *, whole: bool) -> None:
        super().__init__()
        self.blocks: Counter[str] = Counter()
        self.fetched: list[str] = []
        self._within = whole
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = self._within or tag == "article"
        if self._within and tag in BLOCKS:
            self.blocks[tag] += 1
        self.fetched += [value or "" for name, value in attrs if REQUESTS.get(tag) == name]

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag != "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: no dead link or anchor, no page outside the navigation."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


def pages(site: Path) -> Iterator[tuple[str, str]]:
    """All pages with their text."""
    for path in sorted(site.rglob("*.html")):
        yield str(path.relative_to(site)), path.read_text(encoding="utf-8")


def test_dead_links_dead_anchors_and_pages_outside_the_navigation_fail_the_build(
    tmp_path: Path,
) -> None:
    (tmp_path / "benchmarks").mkdir()
    for path in ("configs/mkdocs.yml", "configs/site", "docs", *MOVED):
        copy = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
        (tmp_path / path).parent.mkdir(exist_ok=True)
        copy(ROOT / path, tmp_path / path)
    for path in ("streamduel", "connectors"):
        (tmp_path / path).symlink_to(ROOT / path)
    (tmp_path / "docs/forgotten.md").write_text(
        "# Forgotten\n\n[a](drfit.md) [b](policies.md#nowhere) [c](../configs/nothing.yaml)\n"
    )
    (tmp_path / "site").mkdir()
    done = build(tmp_path / "site", tmp_path)
    output = done.stderr + done.stdout
    assert done.returncode != 0
    assert "forgotten.md" in output
    for mistake in ("'drfit.md'", "#nowhere", "nothing.yaml"):
        assert mistake in output
    assert "  - forgotten.md" in output, "it is in the docs directory but not in the navigation"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_a_page_has_the_same_lists_tables_and_code_on_the_site_as_in_the_repository(
    site: Path, source: Path
) -> None:
    name = MOVED.get(str(source.relative_to(ROOT)), source.stem)
    shown = Content((site / f"{name}.html").read_text(encoding="utf-8"), whole=False)
    text = MarkdownIt("commonmark").enable("table").render(source.read_text(encoding="utf-8"))
    source_content = Content(text, whole=True)
    assert shown.blocks == source_content.blocks
    assert source_content.blocks["h1"] == 1


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    for name, text in pages(site):
        for address in Content(text, whole=True).fetched:
            assert not re.match(r"(\w+:)?//", address) or address.startswith("data:"), name
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(\W?(\w+:)?//", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("page", "target"),
    [
        ("quickstart-ranker", "files/configs/kafka.yaml.html"),
        ("quickstart-ranker", "files/docs/examples/search_service.py.html"),
        ("architecture", "benchmarks.html"),
        ("contributing", "policies.html"),
        ("api/policies", "../contributing.html"),
    ],
)
def test_linked_files_of_the_repository_are_on_the_site(site: Path, page: str, target: str) -> None:
    path = site / f"{page}.html"
    assert f'href="{target}' in path.read_text(encoding="utf-8")
    assert (path.parent / target).is_file()


def test_a_linked_file_is_shown_unchanged(site: Path) -> None:
    shown = (site / "files/docs/examples/simulated_users.py.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", shown)
    first = (ROOT / "docs/examples/simulated_users.py").read_text(encoding="utf-8").splitlines()[0]
    assert first.strip('"') in text


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("client", client.__all__),
        ("policies", policies.__all__),
        ("interleaving", credit.__all__),
        ("testing", [name for name in testing.__all__ if not name.isupper()]),
    ],
)
def test_every_public_name_is_in_the_reference(site: Path, page: str, names: list[str]) -> None:
    text = (site / f"api/{page}.html").read_text(encoding="utf-8")
    module = {"interleaving": "interleaving.credit"}.get(page, page)
    for name in names:
        assert re.search(f'id="streamduel.{module}[.a-z0-9_]*.{name}"', text), name


def test_what_a_plug_in_may_import_is_in_the_reference() -> None:
    step = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("4. Import nothing")[1]
    modules = re.findall(r"`(streamduel\.\w+)`", step.partition("(")[0])
    assert "streamduel.checksum" in modules
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").glob("*.md"))
    assert [name for name in modules if f"::: {name}\n" not in pages] == []


def test_every_policy_is_in_the_reference(site: Path) -> None:
    text = (site / "api/policies.html").read_text(encoding="utf-8")
    for name in policies.names():
        policy = policies.get(name)
        assert f'id="{policy.__module__}.{policy.__qualname__}"' in text, name


def test_examples_in_docstrings_are_code(site: Path) -> None:
    for path in (site / "api").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<blockquote>" not in text, path.name
        assert "gp" in text, path.name


@pytest.mark.parametrize("page", sorted((ROOT / "docs/api").glob("*.md")), ids=lambda p: p.stem)
def test_the_examples_of_the_reference_pass(page: Path) -> None:
    text = re.sub("^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_the_example_of_an_observer_prints_champions(tmp_path: Path) -> None:
    page = (ROOT / "docs/api/service.md").read_text(encoding="utf-8")
    [code] = re.findall("^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "search.yaml").write_text(written(GOOD))
    records = [duel("search", number, "ltr-v1", "bm25", "a") + b"\n" for number in range(40)]
    (tmp_path / "clicks.jsonl").write_bytes(b"".join(records))
    # In a process of its own: the service changes the garbage collector's thresholds.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "search ltr-v1"


def test_fences_are_put_around_doctests() -> None:
    assert doctests.fenced("What.\n\n>>> 1\n1") == "What.\n\n```pycon\n>>> 1\n1\n```"
    assert doctests.fenced(">>> 1\n1\n\nMore.") == "```pycon\n>>> 1\n1\n```\n\nMore."
    assert doctests.fenced("What.") == "What."
