"""Tables whose rows have occurred several times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import ROWS, Row, json_lines, named, only, sentence, winner

COUNTED: list[Row] = [
    *[{"ranker_a": "bm25", "ranker_b": "ltr", "winner": "a", "count": 1}] * 80,
    *[{"ranker_a": "bm25", "ranker_b": "ltr", "winner": "b", "count": 100}] * 10,
]


def test_counts_of_rows_are_refused_with_the_query_that_reads_them(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.json", COUNTED)
    with pytest.raises(ConfigurationError, match=r"'count' of .* how often each row") as refused:
        only(path)
    repeated, without = re.findall('--sql "(.*?)"', str(refused.value))
    (pair,) = only(sql=repeated).pairs
    assert (pair.wins_a, pair.wins_b) == (80, 1000)
    (pair,) = only(sql=without).pairs
    assert (pair.wins_a, pair.wins_b) == (80, 10)


def test_a_check_warns_of_counts_of_rows_with_ids(tmp_path: Path) -> None:
    rows = named(id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], winner=winner,
                 n=lambda r: len(r["id"]))  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))
    assert found.duels == len(ROWS)
    assert sentence(found, "counts").startswith("'n' of ")


@pytest.mark.parametrize("step", [0, 1])
def test_ones_and_numbers_of_rows_count_nothing(step: int, tmp_path: Path) -> None:
    rows = [{**row, "count": 1 + step * number} for number, row in enumerate(COUNTED)]
    assert only(json_lines(tmp_path / "x.json", rows)).duels == 90


def test_two_numbers_in_a_row_may_be_counts(tmp_path: Path) -> None:
    rows = [{**row, "count": 5 + n} for n, row in enumerate(COUNTED[:2])]
    with pytest.raises(ConfigurationError, match="how often each row"):
        only(json_lines(tmp_path / "x.json", rows))


NO_COUNTS: dict[str, tuple[Row, list[str]]] = {
    "sums": ({"wins_a": 1, "wins_b": 0, "winner": None}, []),
    "a segment": ({}, ["segment=count"]),
    "something inside": ({"count": {"n": 100}}, []),
}


@pytest.mark.parametrize("case", NO_COUNTS)
def test_a_column_of_another_meaning_counts_nothing(case: str, tmp_path: Path) -> None:
    change, columns = NO_COUNTS[case]
    path = json_lines(tmp_path / "x.json", [{**row, **change} for row in COUNTED])
    assert only(path, columns=columns).duels == 90
