"""Records that change an experiment, joins at the ends of the window, and several experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.crediting import credit_pattern, functions
from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import START, Row, json_lines, only


def duels(n: int, winner: str, start: int = 0, a: str = "bm25", b: str = "ltr") -> list[Row]:
    return [
        {"type": "duel", "id": f"{a}-{b}-{start + number}", "experiment": "search", "a": a, "b": b,
         "winner": winner, "ts": START + start + number}
        for number in range(n)
    ]  # fmt: skip


def control(action: str, at: int, arm: str | None = None) -> Row:
    return {"type": "control", "id": f"{action}-{at}", "experiment": "search", "action": action,
            "arm": arm, "ts": START + at}  # fmt: skip


def test_a_reset_forgets_what_was_before_it(tmp_path: Path) -> None:
    rows = [*duels(50, "b", start=100), control("reset", 60), *duels(50, "a")]
    (pair,) = only(json_lines(tmp_path / "x.json", rows)).pairs
    assert (pair.wins_a, pair.wins_b) == (0, 50)


def test_a_reset_keeps_the_lists_whose_window_is_open(tmp_path: Path) -> None:
    """As `run` does: it counts a list when its window closes, which is after the reset."""
    reset, window = 2_000_000, 600_000
    shown = {"closed": reset - window - 1, "open": reset - window, "clicked": reset - 1000}
    clicks = {"closed": reset - window, "open": reset - window + 1, "clicked": reset + 500}
    rows = [
        *({"type": "impression", "id": name, "experiment": "search", "a": "bm25", "b": "ltr",
           "teams": ["a", "b"], "ts": START + at} for name, at in shown.items()),
        *({"type": "click", "id": f"c-{name}", "experiment": "search", "impression": name,
           "rank": 1, "ts": START + at} for name, at in clicks.items()),
        {"type": "click", "id": "late", "experiment": "search", "impression": "closed", "rank": 1,
         "ts": START + reset + 1},
        {"type": "click", "id": "nowhere", "experiment": "search", "impression": "x", "rank": 1,
         "ts": START + 5},
        control("reset", reset), *duels(5, "a", start=reset + 9000),
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b) == (5, 2)
    others = {name: found.tallies[name] for name in ("accepted", "late", "unjoined")}
    assert others == {"accepted": 5 + 2 + 2 + 1, "late": 1, "unjoined": 0}


def test_what_the_service_refuses_in_its_own_records_does_not_count(tmp_path: Path) -> None:
    (good,) = duels(1, "a", start=900)
    counts = {"type": "duels", "wins_a": 2, "wins_b": 1, "ties": 0}
    refused = [
        {**good, "id": None}, {**good, "id": "x" * 257}, {**good, "id": "t", "ts": -5},
        {**good, "id": "c", "client": "x" * 257}, {**good, "id": "q", "query": "x" * 1025},
        {**good, **counts, "id": "d", "wins_a": 1_000_000},
        {**good, **counts, "id": "w", "wins_a": "2"}, {**good, "id": 5}, {**good, "id": ""},
        {**good, "id": "u", "client": ""}, {**good, "id": "s", "segment": 5},
        {**good, "id": "f", "ts": 1.5}, {**good, "id": "v", "ts": 2**80},
        {**good, "id": "1e", "teams": ["a", "b"], "clicks": [0], "chances": [1e-310, 0.5],
         "type": "interleaving"},
        {**good, "id": "n", "b": 5}, {**good, "id": "j", "score": float("nan")},
        control("paus", 1), control("retire_arm", 2),
    ]  # fmt: skip
    marker = {"type": "control_marker", "id": "m", "experiment": "search", "offset": 3}
    rows = [*duels(50, "b"), {**good, **counts, "id": "e"}, marker, *refused]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.tallies["accepted"], found.tallies["dead_letter"]) == (51, len(refused))
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b) == (2, 51)


def test_a_record_of_many_megabytes_is_left_out(tmp_path: Path) -> None:
    (large,) = duels(1, "a", start=900)
    rows = [*duels(50, "b"), {**large, "query": "x" * 18_000_000}]
    path = json_lines(tmp_path / "x.json", rows)
    analysis = analyze(Request([str(path)], memory="500MB"))
    assert analysis.experiments["search"].tallies["accepted"] == 50
    assert analysis.unread == {"JSON or size": 1}


def test_an_arm_without_which_one_would_be_left_is_not_retired(tmp_path: Path) -> None:
    retired = [control("retire_arm", 600 + n, arm) for n, arm in enumerate(("old", "ltr"))]
    rows = [*duels(150, "b"), *duels(150, "a", b="old"), *retired]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert found.arms == ["bm25", "ltr"]
    assert (found.tallies["accepted"], found.tallies["dead_letter"]) == (301, 1)


def test_a_retired_arm_takes_its_duels_along(tmp_path: Path) -> None:
    rows = [*duels(150, "b"), *duels(150, "a", b="old"), control("retire_arm", 500, "old")]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert found.arms == ["bm25", "ltr"]
    assert found.tallies["accepted"] == 301


def test_arms_that_met_only_a_retired_one_have_no_duels(tmp_path: Path) -> None:
    rows = [*duels(20, "a", b="old"), *duels(20, "b", a="old"), control("retire_arm", 500, "old")]
    others = [{**each, "experiment": "web"} for each in duels(200, "b")]
    analysis = analyze(Request([str(json_lines(tmp_path / "x.json", [*rows, *others]))]))
    found, web = analysis.experiments["search"], analysis.experiments["web"]
    assert (found.arms, found.champion, found.duels) == (["bm25", "ltr"], None, 0)
    assert (found.tallies["accepted"], web.champion, web.duels) == (41, "ltr", 200)
    assert only(json_lines(tmp_path / "y.json", rows)) == found


def test_the_arms_of_an_applied_configuration_are_those_that_stay(tmp_path: Path) -> None:
    applied = {**control("apply", 500), "settings": {"arms": ["bm25", "ltr"]}}
    rows = [*duels(150, "b"), *duels(150, "a", b="old"), applied]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert found.arms == ["bm25", "ltr"]
    again = {**control("apply", 600), "settings": {"arms": ["bm25", "ltr", "new"]}}
    other = {**control("apply", 700), "settings": {"decide_every": 5}}
    added = json_lines(tmp_path / "y.json", [*rows, again, other])
    assert only(added).arms == ["bm25", "ltr", "new"]


@pytest.mark.parametrize("action", ["reset", "retire_arm"])
@pytest.mark.parametrize(
    "refused", [{"id": "bm25-ltr-7"}, {"actor": 5}, {"id": ""}], ids=["duplicate", "actor", "id"]
)
def test_a_control_record_that_the_service_refuses_changes_nothing(
    action: str, refused: Row, tmp_path: Path
) -> None:
    change = {**control(action, 600, "old"), **refused}
    rows = [*duels(150, "b"), *duels(150, "a", b="old"), change]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert found.arms == ["bm25", "ltr", "old"]
    assert found.duels == 300
    assert found.tallies["duplicate"] + found.tallies["dead_letter"] == 1


@pytest.mark.parametrize(
    ("after", "outcome"),
    [(0, "accepted"), (600_000, "accepted"), (600_001, "late"), (-600_000, "accepted"),
     (-600_001, "unjoined")],
)  # fmt: skip
def test_a_click_is_joined_within_the_window(after: int, outcome: str, tmp_path: Path) -> None:
    rows = [
        *duels(5, "a"),
        {"type": "click", "id": "c", "experiment": "search", "impression": "i", "rank": 1,
         "ts": START + 700_000 + after},
        {"type": "impression", "id": "i", "experiment": "search", "a": "bm25", "b": "ltr",
         "teams": ["a", "b"], "ts": START + 700_000},
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))
    others = {"accepted": 6, "late": 0, "unjoined": 0}
    others[outcome] += 1
    assert {name: found.tallies[name] for name in others} == others
    assert found.pairs[0].wins_b == (outcome == "accepted")


def test_experiments_are_apart_and_one_may_be_chosen(tmp_path: Path) -> None:
    other = [{**row, "experiment": "ads", "id": row["id"]} for row in duels(150, "a")]
    path = json_lines(tmp_path / "x.json", [*duels(150, "b"), *other])

    found = analyze(Request([str(path)])).experiments
    assert {name: each.champion for name, each in found.items()} == {"ads": "bm25", "search": "ltr"}
    assert set(analyze(Request([str(path)], experiment="ads")).experiments) == {"ads"}


def test_of_too_many_experiments_one_is_to_be_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"e{n},x,y,x\n" * 100 for n in range(1001))
    path.write_text(f"experiment_id,ranker_a,ranker_b,winner\n{rows}")
    why = r"has 1,001 experiments, more than 1,000; name one with --experiment\.$"
    with pytest.raises(ConfigurationError, match=why):
        only(path)
    assert only(path, experiment="e7").duels == 100


def test_misspelt_arms_and_experiments_are_left_out(tmp_path: Path) -> None:
    rows = [*duels(3000, "b"), *duels(2, "a", a="bm52"),
            *[{**row, "experiment": "serach"} for row in duels(2, "a", start=9000)]]  # fmt: skip
    analysis = analyze(Request([str(json_lines(tmp_path / "x.json", rows))]))

    assert analysis.left_out == ["serach"]
    found = analysis.experiments["search"]
    assert found.arms == ["bm25", "ltr"]
    assert found.tallies["dead_letter"] == 2


def test_an_arm_with_few_records_of_many_duels_is_no_misspelt_one(tmp_path: Path) -> None:
    rows = [*duels(3000, "b")] + [
        {"type": "duels", "id": f"sum {other}", "experiment": "search", "a": "dense", "b": other,
         "wins_a": 30_000, "wins_b": 20_000, "ties": 0, "ts": 1_790_000_000_000}
        for other in ("bm25", "ltr")
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.champion, found.duels) == ("dense", 103_000)


def test_an_experiment_of_one_arm_does_not_stop_the_others(tmp_path: Path) -> None:
    alone = [{**row, "experiment": "ads", "b": "bm25", "winner": None, "client": f"u{n % 9}"}
             for n, row in enumerate(duels(40, "a"))]  # fmt: skip
    rows = [{**row, "client": f"u{n % 9}"} for n, row in enumerate(duels(300, "b"))]
    analysis = analyze(Request([str(json_lines(tmp_path / "x.json", [*rows, *alone]))]))
    assert set(analysis.experiments) == {"search"}
    assert analysis.experiments["search"].duels == 300


def test_duels_of_one_arm_alone_teach_nothing(tmp_path: Path) -> None:
    alone = [{**row, "b": "bm25", "winner": None, "id": f"alone {n}"}
             for n, row in enumerate(duels(40, "a"))]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", [*duels(100, "b"), *alone]))
    assert (found.duels, found.alone) == (140, 40)
    assert sum(map(sum, found.wins)) == 100


def test_patterns_are_credited_like_lists() -> None:
    used = functions("first_click", {"cart": 3.0, "click": 1.0})
    assert next(iter(used)) == "first_click"
    found = dict(zip(used, credit_pattern("b0\x1fa4:cart\x1f-5", list(used.values())), strict=True))
    assert found == {
        "first_click": 0, "click_count": 1, "any_click": 1, "last_click": 2, "weighted": 2,
        "position_debiased": 2, "probabilistic": 1,
    }  # fmt: skip
    probabilistic = [used["probabilistic"]]
    assert credit_pattern("b0@0.9", probabilistic) == [2]
    assert credit_pattern("", probabilistic) == [1]
