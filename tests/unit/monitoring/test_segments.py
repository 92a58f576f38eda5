"""Segments on the page and in the API."""

from __future__ import annotations

import time

import msgspec

from streamduel.monitoring.api import SegmentsAnswer
from streamduel.monitoring.page.pages import Pages
from streamduel.monitoring.recent_dead_letters import RecentDeadLetters
from streamduel.testing import encode
from tests.unit.monitoring.page.watched import ARMS, Watched

SEGMENTS = {"class": ["navigational", "informational"], "device": ["<phone>"]}


def counted(winner: str, loser: str, segment: object) -> bytes:
    return encode(
        {"type": "duels", "id": f"{winner}{loser}{segment}", "experiment": "search", "a": winner,
         "b": loser, "wins_a": 700, "wins_b": 300, "ties": 0, "segment": segment}
    )  # fmt: skip


def watched() -> Watched:
    found = Watched(segments=SEGMENTS)
    for loser in ARMS[1:]:
        found.fold(counted("bm25", loser, "navigational"))
    for loser in ("bm25", "dense"):
        found.fold(counted("ltr", loser, {"class": "informational", "country": "de"}))
    found.metrics.forecasts.update(found.metrics.figures)
    return found


def test_the_answer_of_the_api() -> None:
    answer = msgspec.to_builtins(SegmentsAnswer.of_view(watched().view))
    classes = answer["segments"]["class"]
    assert {name: (each["champion"], each["duels"]) for name, each in classes.items()} == {
        "navigational": ("bm25", 2000), "informational": ("ltr", 2000),
    }  # fmt: skip
    assert classes["informational"]["confidence"] > 0.95
    phone = {"champion": None, "leader": None, "confidence": 0.0, "duels": 0}
    assert answer["segments"]["device"] == {"<phone>": phone}
    assert answer["disagreements"]["class"]["verdict"] == "opposite"
    assert "device" not in answer["disagreements"]


def test_the_page_shows_each_segment() -> None:
    shown = watched()
    pages = Pages(lambda: shown.metrics.figures, shown.history, RecentDeadLetters(time.time))
    page = pages.experiment("search")
    assert page is not None
    text = " ".join(page.split())
    assert "Segments by class disagree by more than chance: bm25 over ltr" in text
    assert "&lt;phone&gt;" in text
    assert "undecided" in text
    assert "<phone>" not in text


def test_without_segments_nothing_is_shown() -> None:
    shown = Watched()
    pages = Pages(lambda: shown.metrics.figures, shown.history, RecentDeadLetters(time.time))
    assert "Segments" not in (pages.experiment("search") or "")
    assert SegmentsAnswer.of_view(shown.view) == SegmentsAnswer("search", {}, {})
