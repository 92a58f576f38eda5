"""Logs with a row for each result of a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.errors import StreamduelError
from tests.unit.analysis.exports import ROWS, WINS, Row, check, json_lines, only, written

OPTIONS = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet"}

RESULTS: list[Row] = [
    {
        "impression_id": row["id"], "user_id": row["client"], "timestamp": row["ts"],
        "position": rank + 1, "doc_id": f"d{rank}", "ranker": row[side], "side": side,
        "ranker_a": row["a"], "ranker_b": row["b"], "clicked": rank in row["clicks"],
    }
    for rank in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)
    for row in ROWS
    for side in [row["teams"][rank]]
]  # fmt: skip
"""Of all lists, not in the order of their ranks."""

BY_NAME = ("impression_id", "user_id", "timestamp", "position", "doc_id", "ranker", "clicked")
BY_SIDE = ("impression_id", "position", "side", "ranker_a", "ranker_b", "clicked")


def of(columns: tuple[str, ...], **renamed: str) -> list[Row]:
    """The results with these columns, some of which have other names."""
    return [{renamed.get(column, column): row[column] for column in columns} for row in RESULTS]


@pytest.mark.parametrize("suffix", OPTIONS)
def test_they_are_lists(suffix: str, tmp_path: Path) -> None:
    found = only(written(tmp_path / f"x.{suffix}", of(BY_NAME), OPTIONS[suffix]))
    check(found)
    assert found.tallies["accepted"] == len(ROWS)


def test_their_teams_may_be_sides(tmp_path: Path) -> None:
    check(only(json_lines(tmp_path / "x.jsonl", of(BY_SIDE))))


def test_their_columns_may_be_named(tmp_path: Path) -> None:
    names = {"impression_id": "page", "position": "slot", "ranker": "origin", "clicked": "opened"}
    log = json_lines(tmp_path / "x.jsonl", of(BY_NAME, **names))
    chosen = ["id=page", "rank=slot", "teams=origin", "clicked=opened"]
    check(only(log, columns=chosen))


@pytest.mark.parametrize("rank", ["index", "place", "ordinal"])
def test_results_of_queries_are_no_ubi(rank: str, tmp_path: Path) -> None:
    rows = of(BY_NAME, impression_id="query_id", position=rank, ranker="source", user_id="uid")
    check(only(json_lines(tmp_path / "x.jsonl", [row | {"user_query": "red"} for row in rows])))


def test_an_id_may_be_that_of_a_query(tmp_path: Path) -> None:
    rows = [
        {**row, "query_id": row["user_id"][-1], "user_id": row.pop("impression_id")}
        for row in of(BY_NAME)
    ]
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_repeated_rows_count_once(tmp_path: Path) -> None:
    rows = of(BY_NAME)
    check(only(json_lines(tmp_path / "x.jsonl", rows + rows[:1000])))


def test_what_is_no_list_is_counted(tmp_path: Path) -> None:
    row = of(BY_NAME)[0]
    twice = {**row, "impression_id": "twice"}
    wrong = [{**row, "impression_id": None, "clicked": True}, twice, {**twice, "doc_id": "x"}]
    found = only(json_lines(tmp_path / "x.jsonl", of(BY_NAME) + wrong))
    check(found)
    assert found.tallies["dead_letter"] == 2


def test_lists_of_one_ranker_each_are_no_duels(tmp_path: Path) -> None:
    rows = [{**row, "ranker": f"ranker {len(row['impression_id']) % 2}"} for row in of(BY_NAME)]
    with pytest.raises(StreamduelError, match="the log has no duel"):
        only(json_lines(tmp_path / "x.jsonl", rows))


NAMES = {"bm25": ("bm25", "dense"), "ltr": ("ltr", "hybrid")}


def of_four() -> list[Row]:
    """The results of lists of two of four rankers, which no column names."""
    rows = of(BY_NAME)
    for row in rows:
        row["ranker"] = NAMES[row["ranker"]][int(row["impression_id"][2:]) % 2]
    return rows


def test_teams_may_be_two_of_several_rankers(tmp_path: Path) -> None:
    nobody = [{**row, "ranker": "none", "position": 11} for row in of_four()[:50]]
    log = written(tmp_path / "x.csv", of_four() + nobody, OPTIONS["csv"])
    found = only(log)
    assert sorted(found.arms) == ["bm25", "dense", "hybrid", "ltr"]
    assert found.tallies["dead_letter"] == 0
    pairs = {(pair.a, pair.b): (pair.wins_a, pair.wins_b, pair.ties) for pair in found.pairs}
    assert set(map(frozenset, pairs)) == {
        frozenset({"bm25", "ltr"}),
        frozenset({"dense", "hybrid"}),
    }
    assert sum(map(sum, pairs.values())) == len(ROWS)
    wins = dict.fromkeys(found.arms, 0)
    for (a, b), (of_a, of_b, _) in pairs.items():
        wins[a] += of_a
        wins[b] += of_b
    assert wins["ltr"] + wins["hybrid"] == WINS["ltr"]
    assert wins["bm25"] + wins["dense"] == WINS["bm25"]


def test_a_list_of_one_of_several_rankers_cannot_be_used(tmp_path: Path) -> None:
    alone = [
        {**row, "impression_id": "alone", "ranker": "ltr"} for row in of_four()[:: len(ROWS)][:3]
    ]
    found = only(json_lines(tmp_path / "x.jsonl", of_four() + alone))
    assert found.tallies["dead_letter"] == 1


def test_names_of_rankers_may_have_spaces(tmp_path: Path) -> None:
    rows = [{**row, "ranker": f"{row['ranker']} v2"} for row in of(BY_NAME)]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert found.champion == "ltr v2"
    assert found.pairs[0].wins_b == WINS["ltr"]


@pytest.mark.parametrize(
    "names",
    [
        {"position": "listing_position", "clicked": "booked"},
        {"position": "slot", "ranker": "source_model", "clicked": "played"},
    ],
)
def test_columns_may_have_the_names_of_a_trade(names: dict[str, str], tmp_path: Path) -> None:
    check(only(json_lines(tmp_path / "x.jsonl", of(BY_NAME, **names))))
