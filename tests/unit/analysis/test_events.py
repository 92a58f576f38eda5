"""Rows of any log as events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streamduel.analysis.report import ExperimentAnalysis
from tests.unit.analysis.exports import START, Row, json_lines, only

LISTS = 400
DAY_MS = 86_400_000
FORMATS = {"csv": "FORMAT csv", "parquet": "FORMAT parquet"}


def joined(
    path: Path, time: str, options: str = "FORMAT csv", order: str = "i", untimed: int = 0
) -> ExperimentAnalysis:
    """Lists with clicks on y a day later, too late, and three of four with one on x at once.

    Args:
        path: of the log to write.
        time: of each row, in SQL, from the number `i` of a list and milliseconds `ms`.
        options: of the format.
        order: of the rows; clicks have no number.
        untimed: lists without a time.
    """
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            COPY (
                SELECT list_id, a, b, teams, rank, {time} AS ts FROM (
                    SELECT i, i AS list_id, 'x' AS a, 'y' AS b, 'abab' AS teams,
                        NULL::INTEGER AS rank,
                        CASE WHEN i < {LISTS} THEN {START}::BIGINT + i * 60000 END AS ms
                    FROM range({LISTS + untimed}) AS t(i)
                    UNION ALL
                    SELECT NULL, i, NULL, NULL, NULL, 0, {START}::BIGINT + i * 60000 + 5000
                    FROM range({LISTS}) AS t(i) WHERE i % 4 < 3
                    UNION ALL
                    SELECT NULL, i, NULL, NULL, NULL, unnest([1, 3]),
                        {START}::BIGINT + i * 60000 + {DAY_MS}
                    FROM range({LISTS}) AS t(i)
                ) ORDER BY {order}
            ) TO '{path}' ({options})
            """
        )
    return only(path)


@pytest.mark.parametrize("value", ["NaN", "inf"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_time_that_is_no_number_changes_no_other_time(
    suffix: str, value: str, tmp_path: Path
) -> None:
    time = f"CASE i WHEN 7 THEN '{value}'::DOUBLE ELSE ms END"
    found = joined(tmp_path / f"x.{suffix}", time, FORMATS[suffix])
    assert (found.champion, found.days[0].start) == ("x", "2026-09-21")
    assert found.tallies["late"] == 2 * LISTS - 2, "those on a list without a time are not late"


@pytest.mark.parametrize("order", ["i NULLS FIRST", "i DESC NULLS LAST"])
@pytest.mark.parametrize("per_ms", ["1e-3", "1e6"])
def test_the_unit_of_times_is_that_of_most_in_any_order(
    per_ms: str, order: str, tmp_path: Path
) -> None:
    time = f"(ms * CASE i WHEN 7 THEN 1e3 * {per_ms} ELSE {per_ms} END)::HUGEINT"
    found = joined(tmp_path / "x.csv", time, order=order, untimed=12_000)
    assert (found.days[0].start, found.tallies["late"]) == ("2026-09-21", 2 * LISTS - 2)


@pytest.mark.parametrize("value", ["TIMESTAMP '9999-12-31'", "'9999-12-31'::DATE"])
def test_dates_have_no_unit(value: str, tmp_path: Path) -> None:
    """Not even where most of them stand for none."""
    time = f"CASE WHEN i % 4 > 0 THEN {value} ELSE make_timestamp(ms * 1000) END"
    path = tmp_path / "x.parquet"
    found = joined(path, f"CASE WHEN rank IS NULL THEN {time} ELSE {value} END", FORMATS["parquet"])
    assert [day.start for day in found.days][:1] == ["2026-09-21"]


@pytest.mark.parametrize(("own", "winner"), [({0: START, 1: START + 1}, "x"), ({0: START}, "y")])
def test_clicks_of_a_dump_are_credited_in_the_order_of_their_own_times(
    own: dict[int, int], winner: str, tmp_path: Path
) -> None:
    """If each has one, as in the service; else in the order of their arrival."""
    records: list[Row] = []
    for n in range(100):
        records.append(
            {"type": "impression", "id": f"{n}", "a": "x", "b": "y", "teams": ["a", "b"]}
        )
        for rank in (1, 0):
            click = {"type": "click", "id": f"{n}/{rank}", "impression": f"{n}", "rank": rank}
            records.append({**click, **({"ts": own[rank]} if rank in own else {})})
    rows = [
        {"partition": 0, "offset": n, "timestamp": START + 10 * n,
         "value": json.dumps({**record, "experiment": "search"})}
        for n, record in enumerate(records)
    ]  # fmt: skip
    assert only(json_lines(tmp_path / "x.jsonl", rows), credit="first_click").leader == winner


@pytest.mark.parametrize(
    ("chances", "accepted"),
    [
        ([0.9, 0.4], 1), ([0, 1], 1), ([None, 0.5], 1), (["NaN", 0.5], 1),
        ([9, 9], 0), ([0.5, -7], 0), (["inf", 0.5], 0), ([60, 40], 0),
    ],
)  # fmt: skip
def test_chances_are_from_0_to_1(chances: list[Any], accepted: int, tmp_path: Path) -> None:
    rows: list[Row] = [
        {"list": f"{n}", "left": "x", "right": "y", "teams": ["a", "b"], "clicks": [0],
         "chances": chances if n == 7 else [0.9, 0.4]}
        for n in range(50)
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert (found.tallies["accepted"], found.tallies["dead_letter"]) == (
        49 + accepted,
        1 - accepted,
    )
