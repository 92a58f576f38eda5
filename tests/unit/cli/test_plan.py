"""`streamduel plan`: table, JSON, plot and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamduel.cli.plan import days
from tests.unit.cli.commands import Streamduel, into_closed_pipe, table_rows

ASKED = ["--arms", 3, "--difference", 0.15, "--impressions-per-day", 500, "--runs", 12]


def test_table_json_and_plot(streamduel: Streamduel, tmp_path: Path) -> None:
    made, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    result = streamduel(
        "plan", *ASKED, "--click-share", 0.3, "--json", made, "--plot", picture, "--seed", 3
    )
    assert result.status == 0, result.err
    plan = json.loads(made.read_text())
    own, uniform = plan["policies"]
    assert (own["name"], uniform["name"], own["runs"]) == ("top_two", "uniform", 12)
    assert own["days"]["median"] == own["impressions"]["median"] / 500
    # Uniform choice serves no arm alone.
    assert uniform["impressions"]["median"] == pytest.approx(
        uniform["duels"]["median"] / 0.3, abs=1
    )
    assert own["duels"]["median"] <= own["duels"]["p90"]
    assert plan["ab_test"]["days"] == plan["ab_test"]["impressions"] / 500
    assert (plan["confidence"], plan["click_share"], plan["others"]) == (0.95, 0.3, "equal")
    test = f"{plan['ab_test']['impressions']:,}", days(plan["ab_test"]["days"])
    assert table_rows(result.out) == [
        *(
            [
                f"interleaving by {it['name']}",
                *(f"{it['impressions'][share]:,}" for share in ("median", "p90")),
                *(days(it["days"][share]) for share in ("median", "p90")),
                f"{it['wrong']} of 12",
            ]
            for it in (own, uniform)
        ),
        ["A/B test, at best", test[0], test[0], test[1], test[1], ""],
    ]
    for words in (
        "wins 65 % of its duels",
        "the experiment's configuration needs no_click: drop: with its default, tie, it takes "
        "at least 3.3 times the impressions (--no-click tie)",
        "best case",
    ):
        assert words in result.out
    assert "A/B test, at its fixed end" in picture.read_text()


def test_files_are_written_before_a_reader_of_the_table_ends(tmp_path: Path) -> None:
    made, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    into_closed_pipe("plan", *ASKED, "--json", made, "--plot", picture)
    assert json.loads(made.read_text())["policies"]
    assert picture.exists()


def test_a_file_that_fails_does_not_hide_the_table(streamduel: Streamduel) -> None:
    result = streamduel("plan", *ASKED, "--json", "/dev/full")
    assert result.status == 1
    assert "A/B test" in result.out
    assert result.err.startswith("streamduel: '/dev/full' cannot be written (No space left on ")


def test_a_policy_may_have_parameters(streamduel: Streamduel, tmp_path: Path) -> None:
    made = tmp_path / "plan.json"
    result = streamduel("plan", *ASKED, "--policy", "rucb:alpha=2", "--json", made)
    assert result.status == 0, result.err
    own, uniform = json.loads(made.read_text())["policies"]
    assert (own["name"], own["params"]["alpha"], uniform["name"]) == ("rucb", 2.0, "uniform")
    refused = streamduel("plan", *ASKED, "--policy", "rucb:alpa=2")
    assert refused.status == 2
    assert "policy 'rucb' has no parameter 'alpa'; did you mean 'alpha'?" in refused.err


def test_equal_seeds_give_equal_output(streamduel: Streamduel, tmp_path: Path) -> None:
    first, second = (
        streamduel("plan", *ASKED, "--json", tmp_path / name, "--plot", tmp_path / f"{name}.png")
        for name in ("a", "b")
    )
    assert first == second
    for ending in ("", ".png"):
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_a_plan_that_cannot_be_reached_says_so(streamduel: Streamduel, tmp_path: Path) -> None:
    made = tmp_path / "plan.json"
    result = streamduel(
        "plan", "--arms", 2, "--difference", 0.001, "--impressions-per-day", 10, "--runs", 5,
        "--horizon", 1000, "--json", made, "--plot", tmp_path / "plan.png",
    )  # fmt: skip
    assert result.status == 0
    first, second, _ = [row for row in table_rows(result.out) if row[1]]  # else a second line
    assert first[1:] == second[1:] == ["> 1,000", "> 1,000", "> 100", "> 100", "0 of 5"]
    told = " ".join(result.out.split())
    for name in ("top_two", "uniform"):
        assert (
            f"{name} was not sure in 5 of 5 simulated experiments of 1,000 duels; --horizon "
            f"simulates longer ones."
        ) in told
    assert json.loads(made.read_text())["policies"][0]["days"] == {"median": None, "p90": None}


def test_a_policy_with_less_confidence_than_is_asked_is_named(streamduel: Streamduel) -> None:
    result = streamduel(
        "plan", "--arms", 2, "--difference", 0.3, "--impressions-per-day", 10, "--runs", 3,
        "--horizon", 1000, "--policy", "top_two:confidence=0.5",
    )  # fmt: skip
    assert result.status == 0, result.err
    told = " ".join(result.out.split())
    assert "of 1,000 duels; it explores only until its own confidence of 50 %." in told
    assert "--horizon simulates" not in told


@pytest.mark.parametrize(
    ("asked", "cells"),
    [
        (["--policy", "double_thompson", "--click-share", 2e-4], ["> 5,000,000", "> 5,000"]),
        (["--click-share", 1e-6], ["> 1,000,000,000", "> 1,000,000"]),
    ],
    ids=["a long name", "long numbers"],
)
def test_numbers_are_never_cut(
    streamduel: Streamduel, asked: list[object], cells: list[str]
) -> None:
    result = streamduel(
        "plan", "--arms", 3, "--difference", 0.001, "--impressions-per-day", 1000, "--runs", 1,
        "--horizon", 1000, *asked,
    )  # fmt: skip
    assert result.status == 0, result.err
    assert "…" not in result.out
    for cell in ("impressions", *cells):
        assert f" {cell} " in result.out


def test_the_sentences_name_what_was_simulated(streamduel: Streamduel) -> None:
    others = streamduel(
        "plan", *ASKED, "--others", "bradley-terry", "--shared-clicks", 0.9995, "--horizon", 1
    )
    told = " ".join(others.out.split())
    assert table_rows(others.out)[-1][0] == "A/B test"
    assert "wins 65 % of its duels with the second-best one, that one as many with" in told
    assert "100 % of the best ranker's" not in told
    assert "99.9825 % of the best ranker's lists are clicked and 99.9675 %" in told
    assert "simulated experiments of 1 duel;" in told


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--arms", "1"], "--arms must be from 2"),
        (["--arms", "two"], "--arms must be an integer"),
        (["--difference", "0"], "--difference must be from 0.000001"),
        (["--difference", "nan"], "found nan"),
        (["--impressions-per-day", "0"], "--impressions-per-day must be from 0.001"),
        (["--impressions-per-day", "1e-320"], "found 1e-320"),
        (["--policy", "top_tow"], "did you mean 'top_two'?"),
        (["--plot", "plan.gif"], "must be a file named .png"),
        (["--json", "no/such/folder/plan.json"], "--json must be in a directory that exists"),
        (
            ["--json", "-"],
            "--json must be a file (found '-', which is not standard output here; in bash, "
            "--json >(COMMAND) pipes it).",
        ),
        (["--json", "same.png", "--plot", "same.png"], "must name different files"),
    ],
)
def test_mistakes_are_one_sentence(streamduel: Streamduel, changed: list[str], words: str) -> None:
    result = streamduel("plan", *ASKED, *changed)
    assert result.status == 2
    assert words in " ".join(result.err.split())
    assert "Traceback" not in result.err


def test_the_help_teaches(streamduel: Streamduel) -> None:
    out = " ".join(streamduel("plan", "--help").out.split())
    for words in ("0.05 is a clear", "most lists get no click", "Equal seeds give equal plans"):
        assert words in out


def test_a_difference_that_does_not_matter_is_told(streamduel: Streamduel) -> None:
    policy = "top_two:smallest_difference=0.05"
    result = streamduel("plan", *ASKED, "--policy", policy)
    assert result.status == 0, result.err
    assert "also ends when no ranker beats the champion by more than 0.05" in result.out
