"""The report is one file for people, whatever names a log has."""

from __future__ import annotations

import re
from pathlib import Path

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.page import render
from tests.unit.analysis.exports import json_lines, lists


def report(path: Path, **settings: object) -> str:
    return render(analyze(Request([str(path)], **settings)))  # type: ignore[arg-type]


def test_the_report_has_every_part(tmp_path: Path) -> None:
    rows = [{**row, "ts": row["ts"] + 86_400_000 * (n % 4)} for n, row in enumerate(lists(2000))]
    page = report(json_lines(tmp_path / "x.json", rows), experiment="shop")

    for heading in (
        "Win rates of pairs", "If clicks were credited otherwise", "Checks", "By day (UTC)",
        "Records and clients",
    ):  # fmt: skip
        assert f">{heading}</h2>" in page, heading
    assert "Segments by <bdi>country</bdi>" in page
    assert "ltr wins with 9" in page
    assert page.count('<svg class="interval sure"') == 1
    assert page.count('<tr><th scope="row">2026-') == 4
    assert "win rate of <bdi>ltr</bdi> against <bdi>bm25</bdi> alone, which it met most" in page


def test_the_report_says_that_it_has_the_largest_segments_only(tmp_path: Path) -> None:
    rows = [{**row, "country": f"c-{number % 25}"} for number, row in enumerate(lists(500))]
    page = report(json_lines(tmp_path / "x.json", rows), experiment="shop")

    assert "Segments by <bdi>country</bdi>, the 20 largest</h2>" in page


def test_the_report_loads_nothing(tmp_path: Path) -> None:
    page = report(json_lines(tmp_path / "x.json", lists(300)))

    assert "default-src 'none'" in page
    assert re.findall(r"src=|href=|url\(|@import|https?:", page) == []
    assert "<script" not in page


def test_names_cannot_change_the_page(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>" + "y" * 200
    rows = [
        {**row, **{side: bad for side in "ab" if row[side] == "ltr"}, "country": "<b>\x00" * 20}
        for row in lists(1500)
    ]
    page = report(json_lines(tmp_path / "x.json", rows), experiment="<i>" * 50)

    assert "<script" not in page
    assert "<b>\x00" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "y" * 41 not in page


def test_names_break_after_underscores(tmp_path: Path) -> None:
    page = report(json_lines(tmp_path / "x.json", lists(300, arms=("bm25_<b>", "ltr_v2"))))

    assert "<bdi>bm25_<wbr>&lt;b&gt;</bdi>" in page
    assert "<bdi>ltr_<wbr>v2</bdi>" in page


def test_an_undecided_experiment_is_shown_as_such(tmp_path: Path) -> None:
    page = report(json_lines(tmp_path / "x.json", lists(300, lambda _: 0.5)))

    assert "Undecided after 300 duels" in page
    assert '<svg class="interval sure"' not in page


def test_the_number_of_duels_is_that_of_the_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("ranker_a,ranker_b,winner\n" + "x,y,x\n" * 1200 + "x,x,tie\n" * 30)
    page = report(path)

    assert "after 1,200 duels and 30 of a ranker with itself" in page
    assert "<dt>Duels</dt><dd>1,200</dd>" in page


def test_failed_checks_are_beside_the_result(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("ranker_a,ranker_b,teams,clicks\n" + "bm25,hybrid,ab,[0]\n" * 300)
    page = report(path)

    assert '<span class="badge ">decided</span> <span class="badge paused">checks failed' in page
    assert re.search(r"bm25 wins with 99.*Do not rely on this result yet: the checks team", page)

    sound = report(json_lines(tmp_path / "y.json", lists(1500)))
    assert '<span class="badge running">decided</span></div>' in sound
    assert "Do not rely" not in sound
