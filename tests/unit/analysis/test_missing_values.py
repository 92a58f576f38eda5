"""What programs write for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.analysis.exports import ROWS, Row, check, iso, named, only, winner, written

NOTHING = ["NULL", "\\N", "None", "NaN", "NA", "null"]


@pytest.mark.parametrize("nothing", NOTHING)
def test_records_without_an_id_or_a_client_are_not_equal(nothing: str, tmp_path: Path) -> None:
    rows = named(id=lambda _: nothing, user_id=lambda _: nothing, left=lambda r: r["a"],
                 right=lambda r: r["b"], winner=lambda r: r.get(winner(r), nothing))  # fmt: skip
    found = only(written(tmp_path / "x.csv", rows, "FORMAT csv"))
    check(found)
    assert (found.tallies["duplicate"], found.clients.clients) == (0, 0)


def test_a_ranker_may_be_named_none(tmp_path: Path) -> None:
    rows = named(left=lambda r: r["a"].replace("bm25", "none"), winner=winner,
                 right=lambda r: r["b"].replace("bm25", "none"))  # fmt: skip
    found = only(written(tmp_path / "x.csv", rows, "FORMAT csv"))
    assert (found.champion, found.arms) == ("ltr", ["ltr", "none"])


@pytest.mark.parametrize("nothing", NOTHING)
def test_clicks_beside_lists_have_no_teams(nothing: str, tmp_path: Path) -> None:
    shown: list[Row] = [
        {"search_id": r["id"], "left": r["a"], "right": r["b"], "teams": "".join(r["teams"]),
         "position": nothing, "time": iso(r)}
        for r in ROWS
    ]  # fmt: skip
    clicks: list[Row] = [
        {"search_id": r["id"], "left": nothing, "right": nothing, "teams": nothing,
         "position": str(rank), "time": nothing}
        for r in ROWS for rank in r["clicks"]
    ]  # fmt: skip
    check(only(written(tmp_path / "x.csv", [*shown, *clicks], "FORMAT csv")))
