"""A headless Chromium, and the errors that it finds on the pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.world import SEARCH, World, click_log

NewPage = Callable[..., Page]
NewWorld = Callable[[dict[str, Any]], World]

EXPECT_MS: Final = 20_000
"""A page updates every two seconds; a loaded machine takes several times as long."""

expect.set_options(timeout=EXPECT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; closed with the module, because its event loop disturbs other tests."""
    path = shutil.which("chromium")
    assert path is not None, (
        "the tests in a browser need Chromium: install Debian's package 'chromium'."
    )
    with sync_playwright() as playwright:
        # Chromium's sandbox does not start as root, which CI is; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An experiment with some minutes of records, one with an unusual name, and a paused one."""
    small = {"arms": ("x", "y")}
    made = World({"search": SEARCH, "a/b größe": small, "paused": small})
    made.serve(click_log(tmp_path_factory.mktemp("log"), 100_000), commits=30)
    made.fold([b'{"type":"control","id":"p","experiment":"paused","action":"pause"}'])
    made.commit()
    yield made
    made.close()


@pytest.fixture
def new_world() -> Iterator[NewWorld]:
    """Starts services of a test's own."""
    with ExitStack() as stack:
        yield lambda experiments: stack.enter_context(closing(World(experiments)))


@pytest.fixture
def open_page(browser: Browser, new_world: NewWorld) -> Iterator[NewPage]:
    """Opens a page in its own context; at the end, checks that no page had an error.

    Pages close before services, which they ask every two seconds.
    """
    wrong: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(url: str, **settings: Any) -> Page:
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        # Violations of the content security policy come as errors of the console, too.
        page.on("console", lambda message: _note(wrong, message.type, message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        answer = page.goto(url)
        assert answer is not None
        assert answer.ok
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
    hosts = {urlsplit(url).hostname for url in asked}
    assert hosts <= {"127.0.0.1"}, "the pages load nothing from other hosts"


def _note(wrong: list[str], kind: str, text: str) -> None:
    if kind in {"error", "warning"}:
        wrong.append(text)
