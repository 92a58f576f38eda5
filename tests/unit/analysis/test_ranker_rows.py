"""Logs with a row for each of the two rankers of a list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.analysis import ranker_rows
from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    TIES,
    Row,
    check,
    json_lines,
    only,
    winner,
    written,
)

NUMBERS: dict[str, Callable[[Row, str], object]] = {
    "clicks": lambda row, side: int(winner(row) == side),
    "click_count": lambda row, side: 3 * (winner(row) == side),
    "credit": lambda row, side: 0.25 + (winner(row) == side),
    "won": lambda row, side: winner(row) == side,
}


def rows(ranker: str, number: str, *, shown: tuple[str, ...] = ("b", "a")) -> list[Row]:
    value = NUMBERS[number]
    return [
        {"query_id": row["id"], ranker: row[side], number: value(row, side), "shown": 5,
         "user_id": row["client"]}
        for side in shown
        for row in ROWS
    ]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("ranker", ["ranker", "variant", "model_name", "team"])
def test_they_are_one_list(ranker: str, number: str, tmp_path: Path) -> None:
    check(only(json_lines(tmp_path / "x.jsonl", rows(ranker, number))))


@pytest.mark.parametrize("suffix", OPTIONS)
def test_in_every_format(suffix: str, tmp_path: Path) -> None:
    found = only(written(tmp_path / f"x.{suffix}", rows("ranker", "clicks"), OPTIONS[suffix]))
    check(found)
    assert found.tallies["accepted"] == len(ROWS)
    assert found.clients.clients == len({row["client"] for row in ROWS})


def test_each_row_may_have_an_id_of_its_own(tmp_path: Path) -> None:
    log = [{"id": n, **row} for n, row in enumerate(rows("ranker", "clicks"))]
    check(only(json_lines(tmp_path / "x.jsonl", log)))


def test_rows_that_are_sent_again_count_once(tmp_path: Path) -> None:
    twice = [row for row in rows("ranker", "clicks") for _ in range(2)]
    check(only(json_lines(tmp_path / "x.jsonl", twice)))


def test_the_rows_of_a_list_may_be_far_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranker_rows, "FIRST", 1000)
    log = json_lines(tmp_path / "x.jsonl", rows("ranker", "clicks"))  # one ranker after the other
    check(only(log))


def test_lists_that_say_two_things_or_have_one_ranker_cannot_be_used(tmp_path: Path) -> None:
    log = rows("ranker", "clicks")
    log += [log[0] | {"clicks": 7}, {"query_id": "q", "ranker": "ltr", "clicks": 1}]
    found = only(json_lines(tmp_path / "x.jsonl", log))
    assert found.tallies["dead_letter"] == 2
    assert found.tallies["accepted"] == len(ROWS) - 1


@pytest.mark.parametrize("number", ["clicks", "credit", "won"])
def test_lists_with_a_number_of_one_ranker_only_cannot_be_used(number: str, tmp_path: Path) -> None:
    value: dict[str, object] = {"clicks": 1, "credit": 1.25, "won": True}
    log = rows("ranker", number)
    log += [
        {"query_id": f"q{n}", "ranker": ranker, number: value[number] if ranker == "ltr" else None}
        for n in range(50)
        for ranker in ("bm25", "ltr")
    ]
    found = only(json_lines(tmp_path / "x.jsonl", log))
    check(found)
    assert found.tallies["dead_letter"] == 50


def test_a_log_with_nothing_for_no_clicks_is_refused(tmp_path: Path) -> None:
    """As a left join of lists and clicks writes it: some lists have clicks on both rankers."""
    log = [row | {"clicks": row["clicks"] or None} for row in rows("ranker", "clicks")]
    log += [
        {"query_id": f"q{n}", "ranker": ranker, "clicks": 1 + (ranker == "ltr")}
        for n in range(50)
        for ranker in ("bm25", "ltr")
    ]
    with pytest.raises(ConfigurationError, match=r"'clicks' of .* write 0 instead of nothing"):
        only(json_lines(tmp_path / "x.jsonl", log))


@pytest.mark.parametrize("number", ["clicks", "credit", "won"])
def test_a_log_with_the_numbers_of_winners_only_is_refused(number: str, tmp_path: Path) -> None:
    log = [
        row if row[number] in {1, 1.25} else row | {number: None} for row in rows("ranker", number)
    ]
    with pytest.raises(ConfigurationError, match=f"'{number}' of .* write 0 instead of nothing"):
        only(json_lines(tmp_path / "x.jsonl", log))


def test_one_ranker_for_each_user_is_no_interleaving(tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", rows("ranker", "clicks", shown=("a",)))
    with pytest.raises(ConfigurationError, match=r"nothing in .* is recognised"):
        only(log)


def test_rows_of_both_sides_of_a_duel_are_no_rows_of_rankers(tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "ranker": row[side], "opponent": row[other], "won": winner(row) == side,
         "ties": winner(row) == "tie"}
        for side, other in (("a", "b"), ("b", "a"))
        for row in ROWS
        if winner(row) != "tie"
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.jsonl", log))
    assert (found.duels, found.champion) == (len(ROWS) - TIES, "ltr")
