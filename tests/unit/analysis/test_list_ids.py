"""Lists and clicks whose rows have ids of their own beside that of the list."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.unit.analysis.exports import OPTIONS, ROWS, Row, check, only, written

NUMBERS = itertools.count()


def shown(row: Row, own: str, key: str) -> Row:
    return {own: f"row-{next(NUMBERS)}", key: row["id"], "a": row["a"], "b": row["b"],
            "teams": "".join(row["teams"])}  # fmt: skip


def clicked(row: Row, own: str, key: str) -> list[Row]:
    return [{own: f"row-{next(NUMBERS)}", key: row["id"], "position": r} for r in row["clicks"]]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
@pytest.mark.parametrize(
    ("own", "key"), [("_id", "request_id"), ("id", "qid"), ("uuid", "serp_id"), ("_id", "id")]
)
def test_clicks_are_joined_by_the_id_that_lists_have(
    own: str, key: str, suffix: str, tmp_path: Path
) -> None:
    lists = [shown(row, own, key) for row in ROWS]
    clicks = [click for row in ROWS for click in clicked(row, own, key)]
    check(only(written(tmp_path / f"one.{suffix}", [*lists, *clicks], OPTIONS[suffix])))
    check(
        only(
            written(tmp_path / f"lists.{suffix}", lists, OPTIONS[suffix]),
            written(tmp_path / f"clicks.{suffix}", clicks, OPTIONS[suffix]),
        )
    )


def test_a_file_of_clicks_may_have_nothing_but_an_id_and_a_rank(tmp_path: Path) -> None:
    lists = [shown(row, "_id", "id") for row in ROWS]
    clicks = [{"id": row["id"], "rank": rank} for row in ROWS for rank in row["clicks"]]
    check(
        only(
            written(tmp_path / "lists.json", lists, "FORMAT json"),
            written(tmp_path / "clicks.csv", clicks, "FORMAT csv"),
        )
    )
