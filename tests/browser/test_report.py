"""The report of an analysis in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.page import render
from tests.unit.analysis.exports import json_lines, lists


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a log whose credit functions differ, with long names."""
    rows = lists(1500, arms=("learning_to_rank_v1", "learning_to_rank_v2"))
    for row in rows[::3]:
        row["clicks"].append(9)
    path = json_lines(tmp_path_factory.mktemp("log") / "clicks.json", rows)
    return render(analyze(Request([str(path)])))


@pytest.mark.parametrize("width", [320, 390, 768])
def test_the_report_is_not_wider_than_the_screen(browser: Browser, report: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.set_content(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_phone_shows_what_each_credit_function_says(browser: Browser, report: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(report)
    table = page.get_by_role("region", name="Table of credit functions")
    assert "position_debiased" in table.inner_text()
    wide, room = table.evaluate("it => [it.scrollWidth, it.clientWidth]")
    assert wide <= room
    page.close()


def test_a_phone_shows_the_interval_of_each_pair(browser: Browser, report: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(report)
    table = page.get_by_role("region", name="Table of pairs")
    interval = table.get_by_role("columnheader", name="Interval").bounding_box()
    room = table.bounding_box()
    assert interval is not None
    assert room is not None
    assert interval["x"] + interval["width"] <= room["x"] + room["width"]
    page.close()
