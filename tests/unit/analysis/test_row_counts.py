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
