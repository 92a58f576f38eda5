"""docs/demo.md and its screenshot match the demo."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.demo_picture import PICTURE, svg
from streamduel.cli import demo as demo_command
from streamduel.demo.report import sentence
from streamduel.demo.statistics import RECENT
from streamduel.demo.users import RECIPES
from tests.unit.demo.bed import played

PAGE = (Path(__file__).parents[3] / "docs" / "demo.md").read_text(encoding="utf-8")


def words(drawn: str) -> list[str]:
    """What is written in a picture, line by line."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


def test_the_picture_is_what_the_demo_shows() -> None:
    kept = PICTURE.read_text(encoding="utf-8")
    assert words(kept) == words(svg()), "out of date: python -m benchmarks.demo_picture"
    assert len(kept) < 150_000
    assert "url(http" not in kept.replace('"', "")


def test_the_sentence_on_the_page_is_what_the_demo_says(tmp_path: Path) -> None:
    world, ledger, picture = played(tmp_path)
    assert picture is not None
    assert sentence(world, ledger, picture) in " ".join(PAGE.split())


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"the last {RECENT} impressions" in PAGE
    assert f"order {len(RECIPES)} recipes" in PAGE
    assert f"{demo_command.IMPRESSIONS:,} impressions if neither is given" in PAGE
    assert f"a second, {demo_command.SPEED:.0f} if not given" in PAGE


@pytest.mark.parametrize("option", sorted(set(re.findall(r"--([a-z][a-z-]+)", PAGE))))
def test_every_option_on_the_page_exists(option: str) -> None:
    assert option.replace("-", "_") in demo_command.demo.__annotations__
