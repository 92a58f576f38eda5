"""Takes the screenshots of docs/status-page.md, of a simulated search engine.

python -m tests.browser.pictures docs/images
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from streamduel.testing import encode
from tests.browser.world import SEARCH, World, click_log

WIDE: Final[ViewportSize] = {"width": 1280, "height": 960}
TALL: Final[ViewportSize] = {"width": 1280, "height": 1500}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}

SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

OTHERS: Final = {
    "ads/relevance": ("ctr-v1", "ctr-v2"),
    "autocomplete": ("bm25", "ngram", "prefix", "t5-small"),
    "recommendations": ("als", "bm25", "item2vec", "two-tower"),
    "related-items": ("bm25", "co-view", "embedding"),
}
"""Further experiments. All but one have a hold-out."""

LED: Final[Sequence[tuple[str, str, str, int, int]]] = (
    ("ads/relevance", "ctr-v2", "ctr-v1", 2210, 1893),
    ("autocomplete", "t5-small", "ngram", 690, 566),
    ("autocomplete", "t5-small", "prefix", 702, 561),
    ("autocomplete", "t5-small", "bm25", 611, 430),
    ("recommendations", "two-tower", "als", 3391, 2876),
    ("recommendations", "two-tower", "item2vec", 3012, 2455),
    ("recommendations", "two-tower", "bm25", 2987, 1840),
    ("related-items", "co-view", "embedding", 122, 131),
    ("related-items", "embedding", "bm25", 240, 198),
)
"""Wins of pairs in the further experiments."""


def made_up(folder: Path) -> World:
    """Five experiments: one that is nearly sure, one finished, one paused, two that are sure."""
    search = {key: value for key, value in SEARCH.items() if key != "policy"}  # the default one
    experiments = {name: {**search, "arms": arms} for name, arms in OTHERS.items()}
    experiments["ads/relevance"]["guardrails"] = {}
    experiments["autocomplete"]["policy"] = {"name": "c2b", "horizon": 100_000}
    experiments["recommendations"]["policy"] = {"name": "double_thompson"}
    world = World({"search": search, **experiments})
    for number, (name, a, b, wins_a, wins_b) in enumerate(LED):
        world.fold(
            [
                encode(
                    {"type": "duels", "id": f"led-{number}", "experiment": name, "a": a, "b": b,
                     "wins_a": wins_a, "wins_b": wins_b, "ties": 40}
                )
            ]
        )  # fmt: skip
    world.fold(
        [encode({"type": "control", "id": "p", "experiment": "related-items", "action": "pause"})]
    )
    world.serve(click_log(folder, 200_000), commits=34)
    return world


def take(world: World, browser: Browser, folder: Path) -> None:
    """Take all screenshots."""
    search = f"{world.url}/experiments/search"
    for scheme in SCHEMES:
        page = browser.new_page(viewport=WIDE, color_scheme=scheme)
        page.goto(world.url)
        save(page, folder / f"status-overview-{scheme}.png")
        page = browser.new_page(viewport=TALL, color_scheme=scheme)
        page.goto(search)
        page.locator(".heat tbody tr").first.locator("td").nth(1).hover()
        save(page, folder / f"status-experiment-{scheme}.png")
    page = browser.new_page(viewport=PHONE, device_scale_factor=2, color_scheme="light")
    page.goto(search)
    save(page, folder / "status-phone.png")


def save(page: Page, path: Path) -> None:
    """Save a screenshot in 256 colours, a third of the size without a visible difference."""
    with Image.open(BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    page.close()


def main(folder: str) -> None:
    """Write the screenshots to a folder."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        world = made_up(Path(scratch))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        take(world, browser, Path(folder))
        browser.close()
        world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
