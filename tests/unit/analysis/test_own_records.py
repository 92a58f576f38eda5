"""Logs whose records have the types of streamduel, but not its fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.fields import Chosen, Columns
from streamduel.analysis.own_records import are_own, have_own_values, type_column
from tests.unit.analysis.exports import (
    ROWS,
    WINS,
    Row,
    check,
    json_lines,
    only,
    winner,
    written,
)


def interleaved(row: Row) -> Row:
    teams = [row[team] for team in row["teams"]]
    return {"type": "interleaving", "id": row["id"], "teams": teams, "clicked": row["clicks"]}


DUELS: dict[str, Callable[[Row], Row]] = {
    "duels with rankers as winners": lambda row: {
        "type": "duel", "id": row["id"], "experiment": "experiment", "a": row["a"], "b": row["b"],
        "winner": row.get(winner(row)),
    },
    "duels with other names": lambda row: {
        "type": "duel", "qid": row["id"], "left": row["a"], "right": row["b"],
        "winner": row.get(winner(row)),
    },
    "types in upper case": lambda row: {
        "type": "DUEL", "id": row["id"], "experiment": "experiment", "a": row["a"], "b": row["b"],
        "winner": winner(row),
    },
    "lists with rankers as teams": interleaved,
}  # fmt: skip


def events(column: str, of_click: str, by_name: bool, key: str = "request_id") -> list[Row]:
    """Lists and clicks in one table, with a column that tells which is which."""
    rows: list[Row] = []
    for row in ROWS:
        docs = [f"{row['id']}/{rank}" for rank in range(10)]
        teams = [row[team] for team in row["teams"]] if by_name else row["teams"]
        shown = {column: "impression", key: row["id"], "teams": teams, "docs": docs}
        rows.append(shown if by_name else shown | {"ranker_a": row["a"], "ranker_b": row["b"]})
        rows += [
            {column: "click", key: row["id"],
             of_click: docs[rank] if "doc" in of_click else rank}
            for rank in row["clicks"]
        ]  # fmt: skip
    return rows


def own_lists(lone: Row, key: str = "impression", rank: str = "rank") -> list[Row]:
    """Lists and clicks as streamduel writes them, and some duels of a ranker with itself.

    Args:
        lone: the fields of these duels that are not as usual.
        key: what clicks call the id of their list.
        rank: and its rank.
    """
    rows: list[Row] = []
    for number, row in enumerate(ROWS):
        common = {"experiment": "search", "ts": row["ts"]}
        shown = {name: row[name] for name in ("id", "a", "b", "teams")}
        rows.append({"type": "impression", **shown, **common})
        rows += [
            {"type": "click", "id": f"c-{row['id']}", key: row["id"], rank: each, **common}
            for each in row["clicks"]
        ]
        if number % 20 == 0:
            duel = {"type": "duel", "id": f"d-{row['id']}", "a": "ltr", "b": "ltr", "winner": None}
            rows.append({**duel, **common, **lone})
    return rows


@pytest.mark.parametrize("shape", DUELS)
@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_duels_are_read_like_those_of_other_programs(
    shape: str, suffix: str, tmp_path: Path
) -> None:
    rows = [DUELS[shape](row) for row in ROWS]
    check(only(written(tmp_path / f"x.{suffix}", rows, f"FORMAT {suffix}")))


@pytest.mark.parametrize("column", ["type", "event", "event_type"])
@pytest.mark.parametrize("of_click", ["position", "clicked_position", "clicked_doc", "doc_id"])
@pytest.mark.parametrize("by_name", [False, True])
def test_lists_and_clicks_in_one_table(
    column: str, of_click: str, by_name: bool, tmp_path: Path
) -> None:
    check(only(json_lines(tmp_path / "x.jsonl", events(column, of_click, by_name))))


@pytest.mark.parametrize("key", ["id", "query_id", "trace_id"])
@pytest.mark.parametrize(
    ("shown", "clicked"), [("impression", "purchase"), ("view", "click"), ("query", "click")]
)
@pytest.mark.parametrize("column", ["type", "kind"])
def test_types_of_events_that_are_not_streamduels(
    column: str, shown: str, clicked: str, key: str, tmp_path: Path
) -> None:
    rows = events(column, "clicked_position", False, key=key)
    for row in rows:
        row[column] = shown if "teams" in row else clicked
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_streamduels_own_records_are_read_strictly(tmp_path: Path) -> None:
    """The service refuses a duel whose winner is a ranker, if other duels name sides."""
    rows = [
        {"type": "duel", "id": row["id"], "experiment": "search", "a": row["a"], "b": row["b"],
         "winner": row["a"] if number % 4 == 0 else winner(row)}
        for number, row in enumerate(ROWS)
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert found.tallies["dead_letter"] == len(ROWS) / 4


def test_null_in_quotes_is_a_name(tmp_path: Path) -> None:
    names = {"bm25": "null", "ltr": "ltr"}
    rows: list[Row] = [
        {"type": "duel", "id": row["id"], "experiment": "null", "a": names[row["a"]],
         "b": names[row["b"]], "winner": winner(row), "client": "null" if n % 2 else None,
         "segment": "null" if n % 4 else None}
        for n, row in enumerate(ROWS)
    ]  # fmt: skip
    found = analyze(Request([str(json_lines(tmp_path / "x.jsonl", rows))])).experiments["null"]
    (pair,) = found.pairs
    assert (pair.a, pair.wins_a, pair.wins_b) == ("ltr", WINS["ltr"], WINS["bm25"])
    assert (found.clients.clients, found.clients.duels) == (1, len(ROWS) / 2)
    assert found.segments["segment"]["null"].duels == len(ROWS) * 3 / 4


@pytest.mark.parametrize("fault", [{"winner": "none"}, {"id": 7}, {"a": None}], ids=str)
def test_invalid_records_of_one_type_are_dead_letters(fault: Row, tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.jsonl", own_lists(fault)))
    check(found)
    assert (found.tallies["dead_letter"], found.tallies["late"]) == (len(ROWS) / 20, 0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_lists_beside_duels_are_no_ties(suffix: str, tmp_path: Path) -> None:
    found = only(written(tmp_path / f"x.{suffix}", own_lists({}), f"FORMAT {suffix}"))
    check(found)
    assert found.alone == len(ROWS) / 20


def test_clicks_of_another_program_tell_that_lists_are_not_streamduels(tmp_path: Path) -> None:
    rows = own_lists({}, key="request_id", rank="position")
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


DUEL: Row = {
    "type": "duel", "id": "q", "experiment": "shop", "a": "x", "b": "y", "winner": "a", "ts": 5
}  # fmt: skip
BAD_DUEL: Row = {**DUEL, "winner": "x"}
CLICK: Row = {
    "type": "click", "id": "c", "experiment": "shop", "impression": "q", "rank": 1, "ts": 5
}  # fmt: skip
BAD_CLICK: Row = {**CLICK, "impression": None}
OTHER: Row = {"type": "view", "ts": 5}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], False),
        ([DUEL], True),
        ([{**DUEL, "type": "DUEL"}], False),
        ([DUEL, {**DUEL, "type": "DUEL"}], True),
        ([DUEL] + [{"type": "control"}] * 2, False),
        ([DUEL] * 2 + [OTHER], True),
        ([DUEL, OTHER], False),
        ([DUEL, BAD_DUEL], True),
        ([DUEL, BAD_DUEL, BAD_DUEL], False),
        ([DUEL, BAD_DUEL, BAD_DUEL] + [CLICK] * 9, False),
        ([DUEL] * 11 + [BAD_CLICK], True),
        ([DUEL] * 10 + [BAD_CLICK], False),
        ([DUEL] * 10 + [CLICK, BAD_CLICK], True),
        ([{**DUEL, "query": 2**80}], False),
        ([{**DUEL, "teams": "\ud800"}], False),
    ],
)
def test_records_are_streamduels_own_if_most_of_each_frequent_type_are_valid(
    rows: list[Row], expected: bool
) -> None:
    assert are_own(rows, Chosen([])) is expected


def test_own_records_may_have_fields_in_columns_that_are_named() -> None:
    row = {**DUEL, "winner": None, "type": None, "won": "a", "what": "duel"}
    assert are_own([row], Chosen(["winner=won", "type=what", "segment=b"]))
    assert not are_own([row], Chosen(["type=what", "winner=b"]))
    assert not are_own([row], Chosen(["winner=won"]))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["Duel"], "Event Type"),
        (["Interleaving", "purchase"], None),
        (["duels", "interleaving", "purchase"], "Event Type"),
        (["impression", "impression", None], "Event Type"),
        (["impression", "impression", "view"], None),
        (["impression", "click", "view"], "Event Type"),
        (["duel", None], None),
        ([None], None),
    ],
)
def test_a_column_of_types_has_those_that_make_duels(
    types: list[str | None], expected: str | None
) -> None:
    rows = [{"id": "duel", "Event Type": each} for each in types]
    assert type_column(["id", "Event Type"], rows, Chosen([])) == expected


def test_the_column_of_types_may_be_named() -> None:
    rows = [{"what": "view", "type": "duel"}]
    assert type_column(["what", "type"], rows, Chosen(["type=what"])) == "what"
    assert type_column(["type"], rows, Chosen(["type=what"])) is None


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("winner", ["A", "TIE", "b", None], True),
        ("winner", ["a", "x", None], True),
        ("winner", ["a", "x", "y"], False),
        ("winner", ["a", "x", "y", None, None], False),
        ("teams", [["a", "b", None], "a b"], True),
        ("teams", [["x", "y"]], False),
        ("teams", [["a", "y"]], False),
        ("clicks", ["x"], True),
    ],
)
def test_most_winners_and_teams_of_own_records_are_sides(
    field: str, values: list[object], expected: bool
) -> None:
    rows = [{"of": {field: each}} for each in values]
    assert have_own_values(rows, Columns({field: f"of.{field}"}, [])) is expected
