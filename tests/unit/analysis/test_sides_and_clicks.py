"""Who won in logs that streamduel has never seen: names of sides, words, numbers and clicks."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.analysis import joining
from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.engine import Engine
from streamduel.analysis.wording import verdict
from streamduel.errors import ConfigurationError, StreamduelError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    SHAPES,
    TIES,
    WINS,
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


def test_a_winner_is_recognised_in_upper_case(tmp_path: Path) -> None:
    rows = [{"a": "Left", "b": "ltr", "winner": each} for each in ("left", "LTR", "R", "l")]
    (pair,) = only(json_lines(tmp_path / "x.jsonl", rows)).pairs
    assert (pair.wins_a, pair.wins_b) == (2, 2)


def test_lists_and_clicks_may_be_apart(tmp_path: Path) -> None:
    shown = [{"impression_id": r["id"], "a": r["a"], "b": r["b"], "team_draft": r["teams"],
              "shown_at": iso(r)} for r in ROWS]  # fmt: skip
    clicks = [{"impression_id": r["id"], "position": rank, "clicked_at": iso(r)}
              for r in ROWS for rank in r["clicks"]]  # fmt: skip
    found = only(
        written(tmp_path / "clicks.csv", clicks, "FORMAT csv"),
        written(tmp_path / "lists.parquet", shown, "FORMAT parquet"),
    )
    check(found)
    assert found.tallies["accepted"] == len(shown) + len(clicks)


@pytest.mark.parametrize("types", [("serp", "click"), ("impression", "view", "click")])
def test_events_that_are_no_clicks_are_ignored(types: tuple[str, ...], tmp_path: Path) -> None:
    shown = [{"search_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    events = [{"search_id": r["id"], "position": rank + 1, "event_type": each}
              for r in ROWS for rank in r["clicks"] for each in types]  # fmt: skip
    logs = json_lines(tmp_path / "lists", shown), json_lines(tmp_path / "events", events)
    found = analyze(Request([str(log) for log in logs]))
    check(found.experiments["experiment"])
    assert found.ignored == {"'event_type' is no click": (len(types) - 1) * (len(ROWS) - TIES)}


def test_ranks_that_are_not_clicked_are_ignored(tmp_path: Path) -> None:
    shown = [{"search_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    ranks = [{"search_id": r["id"], "rank": rank, "clicked": rank in r["clicks"]}
             for r in ROWS for rank in range(10)]  # fmt: skip
    check(only(json_lines(tmp_path / "lists", shown), json_lines(tmp_path / "ranks", ranks)))


def test_lists_and_clicks_may_be_rows_of_one_table(tmp_path: Path) -> None:
    shown = [{"event": "serp", "event_id": f"s{r['id']}", "search_id": r["id"], "left": r["a"],
              "right": r["b"], "teams": r["teams"]} for r in ROWS]  # fmt: skip
    clicks = [{"event": "click", "event_id": f"c{r['id']}", "search_id": r["id"], "position": rank}
              for r in ROWS for rank in r["clicks"]]  # fmt: skip
    check(only(written(tmp_path / "x.csv", [*clicks, *shown], "FORMAT csv")))


def test_a_column_of_one_side_may_mean_ties_by_false(tmp_path: Path) -> None:
    rows = named(control=lambda _: "bm25", treatment=lambda _: "ltr",
                 control_won=lambda r: r.get(winner(r)) == "bm25",
                 tie=lambda r: winner(r) == "tie")  # fmt: skip
    check(only(json_lines(tmp_path / "x.json", rows)))
    for row in rows:
        del row["tie"]
    assert "If 'control_won' is false for ties too" in sentence(
        only(json_lines(tmp_path / "x.json", rows), columns=["won_a=control_won"]), "ties"
    )
    with pytest.raises(ConfigurationError, match="ties may be among its defeats"):
        only(json_lines(tmp_path / "x.json", rows))


def test_numbers_of_sides_are_not_names_of_rankers(tmp_path: Path) -> None:
    rows = [{"left": "B", "right": "A", "winner": each} for each in (1, 1, 2, 0)]
    (pair,) = only(json_lines(tmp_path / "x.json", rows)).pairs
    assert (pair.a, pair.wins_a, pair.wins_b, pair.ties) == ("A", 1, 2, 1)


@pytest.mark.parametrize("ids", [(1, 2), (2, 1), (0, 1)])
@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_rankers_may_have_numbers(ids: tuple[int, int], suffix: str, tmp_path: Path) -> None:
    number = dict(zip(("bm25", "ltr"), ids, strict=True))
    rows = named(
        left=lambda r: number[r["a"]], right=lambda r: number[r["b"]],
        winner=lambda r: float(number[r[winner(r)]]) if winner(r) in r else None,
    )  # fmt: skip
    (pair,) = only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])).pairs
    wins = {pair.a: pair.wins_a, pair.b: pair.wins_b}
    assert wins == {str(number[arm]): n for arm, n in WINS.items()}


def test_the_meaning_of_numbers_is_told(tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.json", SHAPES["winner by sign"]))
    (told,) = [check.sentence for check in found.checks if check.name == "winner"]
    assert told == "In 'outcome', 1 is taken as a victory of 'a', -1 of 'b', and 0 a tie."


def test_clicks_are_put_into_some_lists_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "GROUPED_AT_ONCE", 600)
    shown = [{"list_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    clicks = [{"list_id": r["id"], "rank": rank} for r in ROWS for rank in r["clicks"]]
    check(only(json_lines(tmp_path / "x", shown), json_lines(tmp_path / "y", clicks)))


def test_winners_that_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    rows = [{"a": r["a"], "b": r["b"], "winner": int(winner(r) == "a")} for r in ROWS]
    with pytest.raises(ConfigurationError, match="has the winners 0 and 1"):
        only(json_lines(tmp_path / "x.json", rows))


def counts(folder: Path, *beats: tuple[str, str]) -> Path:
    """A log of counts in which the first arm of each pair wins 90 of 100 duels."""
    log = folder / "counts.csv"
    log.write_text("a,b,wins_a,wins_b\n" + "".join(f"{i},{j},90,10\n" for i, j in beats))
    return log


def test_a_cycle_has_no_champion(tmp_path: Path) -> None:
    below = [("a", "d"), ("b", "d"), ("c", "d")]
    found = only(counts(tmp_path, ("a", "b"), ("b", "c"), ("c", "a"), *below))
    assert found.champion is None
    assert found.no_winner
    assert verdict(found).startswith("no ranker beats all others")


def test_a_copeland_winner_is_no_condorcet_winner(tmp_path: Path) -> None:
    # a loses to b alone; each other ranker loses to at least two.
    beats = [("a", "c"), ("a", "d"), ("a", "e"), ("b", "a"), ("b", "e"), ("c", "b"), ("c", "e"),
             ("d", "b"), ("d", "c"), ("e", "d")]  # fmt: skip
    found = only(counts(tmp_path, *beats))
    assert (found.champion, found.seeks) == ("a", "copeland")
    assert "none beats all" in verdict(found)


def test_a_copeland_winner_may_beat_all(tmp_path: Path) -> None:
    """That a even beats d is only unknown."""
    others = [("a", "b"), ("a", "c"), ("a", "e"), ("b", "d"), ("c", "d"), ("b", "c"), ("c", "e"),
              ("e", "b"), ("d", "e")]  # fmt: skip
    log = counts(tmp_path, *others)
    with log.open("a") as file:
        file.write("a,d,49,51\n")
    found = only(log)
    assert (found.champion, found.seeks, found.no_winner) == ("a", "copeland", False)
    assert verdict(found).startswith("a beats the most others with ")


def test_duels_of_a_ranker_with_itself_are_named_apart(tmp_path: Path) -> None:
    log = tmp_path / "duels.csv"
    log.write_text("a,b,winner\n" + "bm25,ltr,b\n" * 60 + "bm25,bm25,\n" * 30)
    found = only(log)
    assert (found.duels, found.alone) == (90, 30)
    assert verdict(found).endswith("after 60 duels and 30 of a ranker with itself.")


@pytest.mark.parametrize(
    ("text", "a", "b", "teams"),
    [
        ("abba", "bm25", "ltr", "abba"),
        ("abba", "b", "a", "baab"),
        ("abba", "bm25", "a", "bbbb"),
        ("abba", "a", "b", "abba"),
        ("abba", "A", "B", "abba"),
        ("abba", "B", "A", "????"),
        ("a,B,b", "B", "A", "?a?"),
        ('["a","b"]', "bm25", "ltr", "ab"),
        ('["a","b"]', "b", "a", "ba"),
        ('["a",null,"x"]', "bm25", "ltr", "a-?"),
    ],
)
def test_letters_are_sides_unless_a_ranker_has_their_name(
    text: str, a: str, b: str, teams: str
) -> None:
    with Engine() as engine:
        found = engine.rows("SELECT teams_of(?, ?, ?, false)", [text, a, b])
    assert found == [(teams,)]


def test_lists_without_any_click_are_no_tie_that_is_fine(tmp_path: Path) -> None:
    rows = named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        chosen=lambda r: r["clicks"],
    )[:200]  # fmt: skip
    path = json_lines(tmp_path / "x.json", rows)
    why = sentence(only(path), "clicks joined")
    assert why.startswith("None of 200 lists has a click. Name the column")
    (joined,) = [c for c in only(path, columns=["clicks=chosen"]).checks if c.name[:6] == "clicks"]
    assert joined.verdict == "fine"


def test_clicks_of_no_list_are_those_of_the_only_experiment(tmp_path: Path) -> None:
    shown = [{"list_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS[:50]]
    clicks = [{"list_id": f"no {n}", "rank": n} for n in range(9)]
    lists, others = json_lines(tmp_path / "x", shown), json_lines(tmp_path / "y", clicks)
    found = only(lists, others)
    assert found.tallies["unjoined"] == 9
    assert "9 name no list of the log" in sentence(found, "clicks joined")
    assert only(lists, others, experiment="shop").tallies["unjoined"] == 9
    more = json_lines(tmp_path / "z", [{**row, "experiment": "news"} for row in shown])
    named_one = analyze(Request([str(lists), str(others), str(more)], experiment="shop"))
    assert named_one.unread == {"clicks without a list": 9}
    both = analyze(Request([str(lists), str(others), str(more)]))
    assert both.unread == {"clicks without a list": 9}
    with pytest.raises(StreamduelError, match=r"in 9 records; 9 are clicks whose list is not"):
        only(others)


def test_columns_and_words_of_winners_are_known(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"model_a": "bm25", "model_b": "ltr", "winning_model": winner}
        for winner in ("ltr", "ltr", "bm25", "No preference", "no winner", "NA")
    ]
    (pair,) = only(json_lines(tmp_path / "x.json", rows)).pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (1, 2, 3)


def test_counts_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("left,right,wins_left,wins_right,ties\nltr,bm25,90,10,\nltr,bm25,many,3,1\n")
    (usable,) = [each for each in only(path).checks if each.name == "usable records"]
    assert "1 because of their counts (such as 'many / 3 / 1')" in usable.sentence


@pytest.mark.parametrize("separator", [",", " | ", "; "])
def test_rankers_with_spaces_in_their_names_may_be_teams(separator: str, tmp_path: Path) -> None:
    names = {"bm25": "bm25", "ltr": "ltr v2"}
    rows = [{"id": r["id"], "teams": separator.join(names[r[team]] for team in r["teams"]),
             "clicks": ",".join(map(str, r["clicks"]))} for r in ROWS]  # fmt: skip
    found = only(written(tmp_path / "x.csv", rows, "FORMAT csv"))
    assert found.champion == "ltr v2"
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b) == (WINS["bm25"], WINS["ltr"])


SHOWN = [{"list_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
CLICKED = [{"list_id": r["id"], "position": rank + 1} for r in ROWS for rank in r["clicks"]]


def test_clicks_without_a_rank_are_unusable_records(tmp_path: Path) -> None:
    some = [{**click, "position": None} if i % 3 == 0 else click for i, click in enumerate(CLICKED)]
    found = only(json_lines(tmp_path / "lists", SHOWN), json_lines(tmp_path / "clicks", some))
    assert found.tallies["dead_letter"] == len(CLICKED[::3])
    (usable,) = [each for each in found.checks if each.name == "usable records"]
    assert usable.verdict == "failed"
    assert f"{len(CLICKED[::3]):,} because of their click" in usable.sentence


@pytest.mark.parametrize(("ids", "verdict"), [(0, "unknown"), (1, "fine")])
def test_repeated_rows_without_an_id_are_told(ids: int, verdict: str, tmp_path: Path) -> None:
    rows = named(a=lambda r: r["a"], b=lambda r: r["b"], winner=winner)
    rows = [{"id": i if i < ids else None, **row} for i, row in enumerate(rows + rows)]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    (duplicates,) = [each for each in found.checks if each.name == "duplicates"]
    assert duplicates.verdict == verdict
    assert f"{len(rows) - ids:,} records without an id" in duplicates.sentence


@pytest.mark.parametrize(("n", "verdict"), [(1, "fine"), (200, "warning")])
def test_position_bias_is_reported_if_there_is_evidence(
    n: int, verdict: str, tmp_path: Path
) -> None:
    """Two clicks on the first ranks against one far below."""
    lists = [
        {"id": f"q{number}", "a": "bm25", "b": "ltr", "teams": list("aabbababab"),
         "clicks": [0, 1, 9]}
        for number in range(n)
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", lists))
    assert found.credits["click_count"].leader == "bm25"
    assert found.credits["position_debiased"].leader == "ltr"
    (position,) = [each for each in found.checks if each.name == "position bias"]
    assert position.verdict == verdict


@pytest.mark.parametrize("ranks", [{"teams": ["a", "b"], "clicks": [0]}, {"winner": "a"}])
def test_position_bias_needs_longer_lists_with_ranks(ranks: Row, tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "a": "bm25", "b": "ltr", **ranks} for n in range(9)]
    found = only(json_lines(tmp_path / "x.json", rows))
    (position,) = [each for each in found.checks if each.name == "position bias"]
    assert position.verdict == "unknown"
    assert position.sentence == "No list of more than two ranks has a click with a rank."


FOR_BM25 = {"teams": [*"aabbababab"], "clicks": [0, 1]}
FOR_LTR = {**FOR_BM25, "clicks": [9]}
BIASED = {**FOR_BM25, "clicks": [0, 1, 9]}
"""For bm25, and for ltr if clicks are weighed."""


@pytest.mark.parametrize(
    ("lists", "verdict", "says"),
    [
        ([BIASED], "fine", "is undecided, too."),
        ([FOR_BM25] * 200, "fine", "has the same champion."),
        ([BIASED] * 200, "warning", "changes the champion: ltr instead of bm25."),
        ([BIASED] * 40 + [FOR_BM25] * 40, "warning",
         "changes the champion: undecided instead of bm25."),
        ([BIASED] * 40 + [FOR_LTR] * 40, "warning",
         "changes the champion: ltr instead of undecided."),
    ],
)  # fmt: skip
def test_position_bias_compares_champions(
    lists: list[Row], verdict: str, says: str, tmp_path: Path
) -> None:
    rows = [{"id": f"q{n}", "a": "bm25", "b": "ltr", **row} for n, row in enumerate(lists)]
    found = only(json_lines(tmp_path / "x.json", rows))
    (position,) = [each for each in found.checks if each.name == "position bias"]
    assert position.verdict == verdict
    assert position.sentence.endswith(f" rank. Weighing clicks by their rank {says}")


def test_position_bias_claims_nothing_where_clicks_are_not_weighed(tmp_path: Path) -> None:
    counts = tmp_path / "y.csv"  # of each side, without ranks
    counts.write_text("id,ranker_a,ranker_b,clicks_a,clicks_b\nx1,bm25,ltr,1,0\nx2,bm25,ltr,0,2\n")
    found = only(json_lines(tmp_path / "x.json", ROWS), counts)
    assert "position_debiased" not in found.credits
    (position,) = [each for each in found.checks if each.name == "position bias"]
    assert position.verdict == "fine"
    assert position.sentence.endswith(" clicks are on the first rank.")
