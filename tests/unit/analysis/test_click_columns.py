"""Columns that tell whether or how often users clicked are not those of the ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    Row,
    check,
    iso,
    json_lines,
    named,
    only,
    sentence,
    winner,
    written,
)

LISTS: dict[str, Callable[[Row], object]] = {
    "id": lambda r: r["id"], "ranker_a": lambda r: r["a"], "ranker_b": lambda r: r["b"],
    "teams": lambda r: "".join(r["teams"]),
}  # fmt: skip


def rank(row: Row) -> int | None:
    return row["clicks"][0] if row["clicks"] else None


@pytest.mark.parametrize("suffix", ["json", "csv"])
@pytest.mark.parametrize("column", ["clicked", "clicks"])
@pytest.mark.parametrize("kind", [bool, int])
def test_a_flag_of_each_list_is_no_rank(
    kind: type, column: str, suffix: str, tmp_path: Path
) -> None:
    rows = named(**LISTS, **{column: lambda r: kind(rank(r) is not None), "click_position": rank})
    check(only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])))
    for row in rows:
        del row["click_position"]
    with pytest.raises(ConfigurationError, match="whether it was clicked, but not on which rank"):
        only(written(tmp_path / f"y.{suffix}", rows, OPTIONS[suffix]))


@pytest.mark.parametrize("column", ["clicked_positions", "clicked_ranks", "clicked_docs"])
def test_a_number_of_clicks_is_no_rank(column: str, tmp_path: Path) -> None:
    def clicked(row: Row) -> list[object]:
        return [f"d{n}" for n in row["clicks"]] if column == "clicked_docs" else row["clicks"]

    docs = {"docs": lambda _: [f"d{n}" for n in range(10)]}
    rows = named(**LISTS, **docs, clicks=lambda r: 3 * len(r["clicks"]), **{column: clicked})
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_clicks_of_each_side_count_beside_teams(tmp_path: Path) -> None:
    rows = named(
        **LISTS, docs=lambda _: [f"d{n}" for n in range(10)], clicks=lambda r: len(r["clicks"]),
        clicks_a=lambda r: int(winner(r) == "a"), clicks_b=lambda r: int(winner(r) == "b"),
    )  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_numbers_of_clicks_are_not_credited_by_an_order_that_is_unknown(tmp_path: Path) -> None:
    counts = {
        "clicks_control": lambda r: 1 + (winner(r) == "a"),
        "clicks_treatment": lambda r: 1 + (winner(r) == "b"),
    }
    path = json_lines(tmp_path / "x.jsonl", named(**counts))
    assert set(only(path).credits) == {"click_count", "any_click"}
    with pytest.raises(ConfigurationError, match=r"--credit last_click needs the order of .* \("):
        only(path, credit="last_click")
    with pytest.raises(ConfigurationError, match=r"needs the ranks of the clicks.*any_click, cl"):
        only(path, credit="position_debiased")
    path = json_lines(tmp_path / "y.jsonl", named(**LISTS, **counts, clicks=lambda r: r["clicks"]))
    assert {"first_click", "position_debiased"} < set(only(path).credits)  # the clicks are there


def test_one_number_for_each_list_is_a_rank_if_its_column_is_mapped(tmp_path: Path) -> None:
    rows = named(**LISTS, clicks=lambda r: 10 if rank(r) is None else rank(r))
    rows = [row for row in rows if row["clicks"] != 10]
    path = json_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(ConfigurationError, match=r"may be a rank or a number of clicks\. .* --map"):
        only(path)
    assert only(path, columns=["clicks=clicks"]).champion == "ltr"


def test_numbers_of_clicks_do_not_replace_clicks_of_another_table(tmp_path: Path) -> None:
    shown = named(
        impression_id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], time=iso,
        teams=lambda r: r["teams"], clicks=lambda r: 2 * len(r["clicks"]),
    )  # fmt: skip
    clicks = [{"impression_id": r["id"], "position": n, "time": iso(r)}
              for r in ROWS for n in r["clicks"]]  # fmt: skip
    check(only(
        written(tmp_path / "shown.csv", shown, "FORMAT csv"),
        written(tmp_path / "clicks.csv", clicks, "FORMAT csv"),
    ))  # fmt: skip


def test_clicks_of_lists_that_have_their_own_are_told(tmp_path: Path) -> None:
    shown = named(**LISTS, clicks=lambda r: r["clicks"])
    clicks = [{"impression_id": r["id"], "position": n} for r in ROWS for n in r["clicks"]]
    found = only(json_lines(tmp_path / "x.jsonl", shown), json_lines(tmp_path / "y.jsonl", clicks))
    check(found)
    assert "Lists have clicks of their own" in sentence(found, "clicks joined")


def test_rank_0_of_every_list_without_a_click_is_refused(tmp_path: Path) -> None:
    rows = named(**LISTS, click_position=lambda r: 0 if rank(r) is None else r["clicks"][0] + 1)
    path = json_lines(tmp_path / "x.jsonl", rows)
    check(only(path))  # a click on the tenth of ten ranks shows that they begin with 1
    path = json_lines(tmp_path / "y.jsonl", [r for r in rows if r["click_position"] != 10])
    with pytest.raises(ConfigurationError, match="0 may be the first rank or no click"):
        only(path)
    assert only(path, columns=["clicks=click_position"]).duels
