"""The documentation site in a real browser: it is read and searched, and asks no other host."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NewPage
from tests.site import build


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing: pytest shows what goes wrong."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    """Where the site is served."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(served: str, open_page: NewPage) -> Page:
    """The landing page."""
    return open_page(f"{served}/index.html", viewport={"width": 1280, "height": 900})


def test_a_reader_finds_a_page_by_searching(page: Page) -> None:
    page.get_by_role("textbox", name="Search").press_sequentially("retire-arm")
    page.locator(".md-search-result__link").first.click()
    expect(page.locator("article h1")).to_contain_text("Experiments")


@pytest.mark.parametrize("start", ["index.html", "research/top-two.html"])
def test_a_site_on_a_disk_is_searched_too(site: Path, browser: Browser, start: str) -> None:
    page = browser.new_page()
    others: list[str] = []
    page.on("request", lambda asked: others.append(asked.url))
    page.goto((site / start).as_uri())
    page.get_by_role("textbox", name="Search").press_sequentially("holdout")
    page.locator(".md-search-result__link").first.click()
    expect(page.locator("article h1")).to_have_text(re.compile("Experiments|Glossary"))
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in others)
    page.close()


def test_a_reader_comes_from_the_quick_start_to_a_file_of_the_repository(page: Page) -> None:
    page.locator("article").get_by_role("link", name="A ranker service", exact=True).click()
    page.get_by_role("link", name="configs/kafka.yaml").click()
    expect(page.locator("article")).to_contain_text("bootstrap_servers: localhost:9092")


def test_pictures_are_there(served: str, open_page: NewPage) -> None:
    page = open_page(f"{served}/papers.html")
    for picture in page.locator("article img").all():
        picture.scroll_into_view_if_needed()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


def test_code_of_a_hundred_columns_fits_a_usual_screen(served: str, open_page: NewPage) -> None:
    page = open_page(f"{served}/index.html", viewport={"width": 1440, "height": 900})
    wide = "code => code.scrollWidth - code.clientWidth"
    assert page.locator("article pre > code").first.evaluate(wide) == 0
