"""Outcomes without a side, numbers of teams, and comparisons from both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import pytest

from streamduel.errors import ConfigurationError, StreamduelError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    TIES,
    WINS,
    Row,
    check,
    json_lines,
    named,
    only,
    winner,
    written,
)

RANKERS: dict[str, Callable[[Row], object]] = {"left": lambda r: r["a"], "right": lambda r: r["b"]}


def words(a: object, b: object, tie: object) -> Callable[[Row], object]:
    return lambda row: {"a": a, "b": b, "tie": tie}[winner(row)]


@pytest.mark.parametrize(
    ("a", "b", "tie"),
    [
        ("win", "loss", "tie"),
        ("Won", "Lost", "Draw"),
        ("W", "L", "T"),
        ("left is better", "right is slightly better", "about the same"),
        ("left", "right", "tie (bothbad)"),
        ("left", "right", "no_difference"),
    ],
)
def test_outcomes_in_words_are_understood(a: str, b: str, tie: str, tmp_path: Path) -> None:
    rows = named(**RANKERS, outcome=words(a, b, tie))
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


@pytest.mark.parametrize(
    ("a", "b", "tie"),
    [("W", "L", "D"), ("win", "loss", "draw"), (1, 2, 0), (1, -1, 0), ("1.0", "0.0", "0.5")],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_outcomes_mean_the_same_in_any_order_of_the_rows(
    a: object, b: object, tie: object, order: tuple[int, ...], tmp_path: Path
) -> None:
    counts = {a: 11_000, b: 10_500, tie: 10_001}
    parts = [f"{value},{n}" for value, n in counts.items()]
    values = ", ".join(f"({place}, '{part}')" for place, part in zip(order, parts, strict=True))
    path = tmp_path / "x.csv"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT 'ltr' AS ranker_a, 'bm25' AS ranker_b, split_part(v, ',', 1) AS result"
            f" FROM (VALUES {values}) AS t(place, v), range(split_part(v, ',', 2)::INT) ORDER BY"
            f" place) TO '{path}'"
        )
    (pair,) = only(path).pairs
    assert (pair.a, pair.wins_b, pair.wins_a, pair.ties) == ("bm25", *counts.values())


@pytest.mark.parametrize(("a", "b"), [("1.0", "2.0"), ("1.0", "-1.0"), ("1.0", "0.0")])
def test_no_number_beside_numbers_is_a_tie(a: str, b: str, tmp_path: Path) -> None:
    ties = {"NaN": 20, "0.5" if b == "0.0" else "nan": TIES - 20}
    written = iter([tie for tie, n in ties.items() for _ in range(n)])
    rows = named(
        **RANKERS, outcome=lambda r: next(written) if winner(r) == "tie" else words(a, b, "")(r)
    )
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_a_rare_other_number_does_not_change_what_numbers_mean(tmp_path: Path) -> None:
    rows = named(**RANKERS, winner=words(1, 2, 0))
    found = only(json_lines(tmp_path / "x.jsonl", [{**rows[0], "winner": 7}, *rows]))
    check(found)
    assert found.tallies["dead_letter"] == 1
    many = [{**row, "winner": 7} for row in rows[:3]]
    with pytest.raises(StreamduelError, match="because of their winner"):
        only(json_lines(tmp_path / "y.jsonl", [*many, *rows]))


def test_the_larger_score_wins(tmp_path: Path) -> None:
    rows = named(
        a=lambda r: r["a"], b=lambda r: r["b"], score_a=lambda r: -0.5 - 2 * (winner(r) == "b"),
        score_b=lambda r: -0.5 - 2 * (winner(r) == "a"),
    )  # fmt: skip
    unknown = [dict(rows[0], score_b=each) for each in (None, "nan", "1e999", "many")]
    found = only(json_lines(tmp_path / "x.jsonl", [*rows, *unknown]))
    check(found)
    (told,) = [check.sentence for check in found.checks if check.name == "winner"]
    assert told.startswith("The larger of 'score_a' and 'score_b' is taken as a victory")
    (told,) = [check.sentence for check in found.checks if check.name == "dependence on credit"]
    assert told == "All 3 ways to count ties, with every credit function, agree on ltr."
    assert found.tallies["dead_letter"] == len(unknown)

    beside = [{**row, "teams": r["teams"], "clicks": r["clicks"], "score_b": 9}
              for r, row in zip(ROWS, rows, strict=True)]  # fmt: skip
    check(only(json_lines(tmp_path / "y.jsonl", beside)))  # the clicks determine the winners


def test_scores_with_decimal_commas_are_refused(tmp_path: Path) -> None:
    rows = named(**RANKERS, score_a=lambda _: "0,5", score_b=lambda _: "2,5")
    log = json_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(ConfigurationError, match="must be numbers, with a decimal point") as error:
        only(log)
    assert str(error.value).startswith(f"'score_a' and 'score_b' of '{log}'")
    assert str(error.value).endswith("(found '0,5').")


def test_the_checks_say_what_an_outcome_is_taken_for(tmp_path: Path) -> None:
    rows = named(**RANKERS, outcome=words("win", "loss", "tie"))
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    (told,) = [check.sentence for check in found.checks if check.name == "winner"]
    assert told == "In 'outcome', win is taken as a victory of 'left', loss of 'right'."


Side = Mapping[str, object]


def both(mine: Side, other: Side, own_ids: bool = False) -> list[Row]:
    """Each comparison from the side of either ranker."""
    rows = []
    for row in ROWS:
        for ranker, rival, side in (("a", "b", mine), ("b", "a", other)):
            value = side[winner(row)]
            key = f"{row['id']}-{ranker}" if own_ids else row["id"]
            rows.append({"id": key, "ranker": row[ranker], "opponent": row[rival], "won": value})
    return rows


OUTCOMES: dict[str, tuple[Side, Side]] = {
    "words": ({"a": "win", "b": "loss", "tie": "tie"}, {"a": "loss", "b": "win", "tie": "tie"}),
    "numbers": ({"a": 1, "b": 0, "tie": 0.5}, {"a": 0, "b": 1, "tie": 0.5}),
}


@pytest.mark.parametrize("outcomes", OUTCOMES)
@pytest.mark.parametrize("own_ids", [False, True])
def test_comparisons_from_both_sides_count_once(
    outcomes: str, own_ids: bool, tmp_path: Path
) -> None:
    path = json_lines(tmp_path / "x.jsonl", both(*OUTCOMES[outcomes], own_ids))
    check(only(path))
    rows = [{**row, "a": row["ranker"], "b": row["opponent"]} for row in both(*OUTCOMES["words"])]
    check(only(json_lines(tmp_path / "y.jsonl", rows), columns=["a=a", "b=b"]))


def test_one_side_of_each_comparison_is_all_of_it(tmp_path: Path) -> None:
    rows = both(*OUTCOMES["words"])[::2]
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


@pytest.mark.parametrize("column", ["left_won", "won"])
def test_ties_among_defeats_are_refused(column: str, tmp_path: Path) -> None:
    names = RANKERS
    if column == "won":
        names = {"ranker": RANKERS["left"], "opponent": RANKERS["right"]}
    rows = named(**names, **{column: lambda r: winner(r) == "a"})
    path = json_lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(ConfigurationError, match="ties may be among its defeats"):
        only(path)
    field = "won_a" if column == "left_won" else "winner"
    assert only(path, columns=[f"{field}={column}"]).duels == len(ROWS)
    tied = [{**row, "tie": winner(r) == "tie"} for row, r in zip(rows, ROWS, strict=True)]
    check(only(json_lines(tmp_path / "y.jsonl", tied)))


@pytest.mark.parametrize(
    ("won", "lost"),
    [("winner", "loser"), ("winner_model", "loser_model"), ("chosen", "rejected")],
)
def test_winner_and_loser_name_the_rankers(won: str, lost: str, tmp_path: Path) -> None:
    rows = [
        {won: row[winner(row)], lost: row["ab".replace(winner(row), "")]}
        for row in ROWS if winner(row) != "tie"
    ]  # fmt: skip
    rows += [{won: "ltr", lost: "dense"}] * 200
    pair = only(json_lines(tmp_path / "x.jsonl", rows)).pairs[0]
    assert (pair.a, pair.b) == ("bm25", "ltr")
    assert (pair.wins_a, pair.wins_b, pair.ties) == (WINS["bm25"], WINS["ltr"], 0)


def test_teams_are_1_and_2(tmp_path: Path) -> None:
    rows = named(
        **RANKERS, teams=lambda r: ["ab".index(t) + 1 for t in r["teams"]],
        clicks=lambda r: r["clicks"],
    )  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


REFUSED: dict[str, tuple[list[Row], str]] = {
    "teams 0 and 1": (
        named(**RANKERS, teams=lambda r: ["ab".index(t) for t in r["teams"]],
              clicks=lambda r: r["clicks"]),
        "'teams' of .* has the teams 0 and 1, which can be read in two ways",
    ),
    "preferences of -1": (
        named(**RANKERS, preference=words(-1, 1, 0)),
        "'preference' of .* has the preferences 1 and -1, which can be read in two ways",
    ),
    "outcomes of a treatment": (
        named(control=lambda r: r["a"], treatment=lambda r: r["b"],
              outcome=words("loss", "win", "tie")),
        "'outcome' of .* has the outcomes loss and win, which can be read in two ways",
    ),
    "numbers of a treatment": (
        named(control=lambda r: r["a"], treatment=lambda r: r["b"], outcome=words(-1, 1, 0)),
        "'outcome' of .* has the outcomes .* which can be read in two ways",
    ),
    "outcomes of nobody": (
        named(outcome=words("win", "loss", "tie")),
        "'outcome' of .* says loss and win, but not of which ranker",
    ),
    "numbers of nobody": (
        named(teams=lambda r: ["ab".index(t) for t in r["teams"]], clicks=lambda r: r["clicks"]),
        "'teams' of .* says 0 and 1, but not of which ranker",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_read_in_two_ways_is_refused(case: str, tmp_path: Path) -> None:
    rows, expected = REFUSED[case]
    with pytest.raises(ConfigurationError, match=expected):
        only(json_lines(tmp_path / "x.jsonl", rows))
    assert TIES


def results(row: Row) -> list[Row]:
    """The results of a list, not in the order of their ranks."""
    found: list[Row] = [
        {"doc_id": f"d{rank}", "position": rank + 1, "ranker": row[team],
         "clicked": rank in row["clicks"]}
        for rank, team in enumerate(row["teams"])
    ]  # fmt: skip
    return found[::-1]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_results_may_be_objects_with_their_teams(suffix: str, tmp_path: Path) -> None:
    rows = named(search=lambda r: r["id"], items=results)
    check(only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])))


def test_results_with_teams_do_not_replace_the_winner(tmp_path: Path) -> None:
    rows = [{**row, "items": results(ROWS[0])} for row in named(**RANKERS, winner=winner)]
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
@pytest.mark.parametrize("names", ["rankers", "sides", "numbers"])
def test_documents_may_be_grouped_by_team(names: str, suffix: str, tmp_path: Path) -> None:
    def teams(row: Row) -> dict[str, list[str]]:
        found = {}
        for number, side in enumerate("ab"):
            team = {"rankers": row[side], "sides": side, "numbers": str(number)}[names]
            found[team] = [f"d{rank}" for rank, it in enumerate(row["teams"]) if it == side]
        return found

    rankers = {} if names == "rankers" else RANKERS
    rows = named(
        search=lambda r: r["id"], **rankers, teams=teams, clicks=lambda r: r["clicks"],
        ranking=lambda _: [f"d{rank}" for rank in range(10)],
    )  # fmt: skip
    check(only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])))


def test_a_flag_for_each_outcome_is_understood(tmp_path: Path) -> None:
    rows = named(
        model_a=lambda r: r["a"], model_b=lambda r: r["b"], winner_model_a=words(1, 0, 0),
        winner_model_b=words(0, 1, 0), winner_tie=words(0, 0, 1),
    )  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", rows)))
