"""The rows of the tables that `inspect` and `run --until-end` print."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from streamduel.cli.tables import _arm_rows, _open, _print_dead_letters, _segments_table
from tests.unit.cli.commands import table_rows


def pair(a: str, b: str, win_rate: float | None, low: float, high: float) -> Any:
    return SimpleNamespace(a=a, b=b, win_rate=win_rate, interval=(low, high))


def words(printed: RenderableType) -> list[list[str]]:
    """The cells of each row."""
    console = Console(file=io.StringIO(), width=200, _environ={})
    console.print(printed)
    assert isinstance(console.file, io.StringIO)
    return table_rows(console.file.getvalue())


def test_each_arm_is_seen_from_the_champion_the_strongest_first() -> None:
    experiment: Any = SimpleNamespace(
        arms=["a", "b", "c", "d"],
        champion="b",
        wins=[[0, 40, 7, 0], [60, 0, 30, 0], [3, 10, 0, 1], [0, 0, 0, 0]],
        evidence=[1.0, 0.0, 3.0, 4.56],
        required=3.0,
        pairs=[
            pair("a", "b", 0.4, 0.3, 0.48), pair("a", "c", 0.7, 0.4, 0.9),
            pair("b", "c", 0.75, 0.6, 0.9), pair("b", "d", None, 0.0, 1.0),
        ],
    )  # fmt: skip
    assert _arm_rows(experiment, "champion") == [
        ["b", "2", "140", "champion", "", "0.0"],
        ["a", "1", "110", "0.600", "0.520 … 0.700", "1.0"],
        ["c", "1", "51", "0.750", "0.600 … 0.900", "3.0 out"],
        ["d", "0", "1", "never met", "", "4.6 out"],
    ]


@pytest.mark.parametrize(
    ("champion", "names", "cells"), [(None, ["b", "a"], 0), ("a", ["a", "b"], 1)]
)
def test_the_champion_comes_first_if_there_is_one(
    champion: str | None, names: list[str], cells: int
) -> None:
    experiment: Any = SimpleNamespace(
        arms=["a", "b"], champion=champion, wins=[[0, 0], [3, 0]], evidence=[0.0, 0.0],
        required=3.0, pairs=[pair("a", "b", 0.0, 0.0, 0.9)],
    )  # fmt: skip
    rows = _arm_rows(experiment, "first arm")
    assert [row[0] for row in rows] == names
    assert sum(row.count("first arm") for row in rows) == cells


def test_a_segment_has_a_champion_or_an_arm_that_is_ahead() -> None:
    found = {
        "none": SimpleNamespace(champion=None, leader=None, confidence=0.0, duels=0),
        "ahead": SimpleNamespace(champion=None, leader="x", confidence=0.5, duels=7),
        "sure": SimpleNamespace(champion="y", leader="y", confidence=0.97, duels=2000),
    }
    experiment: Any = SimpleNamespace(segments={"class": found})
    assert words(_segments_table(experiment, "class")) == [
        ["none", "undecided", "0.0 %", "0"],
        ["ahead", "undecided, x is ahead", "50.0 %", "7"],
        ["sure", "y", "97.0 %", "2,000"],
    ]


@pytest.mark.parametrize(
    ("named", "rest"),
    [
        (1203, ""),
        (1202, ", of which 1 is counted for no experiment"),
        (3, ", of which 1,200 are counted for no experiment"),
    ],
)
def test_dead_letters_of_no_experiment_are_counted(named: int, rest: str) -> None:
    report: Any = SimpleNamespace(
        dead_letters={"invalid_json": 3, "invalid_record": 1200},
        experiments={"search": SimpleNamespace(tallies={"dead_letter": named})},
    )
    console = Console(file=io.StringIO(), width=200, _environ={})
    _print_dead_letters(console, report)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == f"dead letters: 1,203{rest}"
    assert ["│", "invalid_record", "│", "1,200", "│"] in [line.split() for line in lines]


@pytest.mark.parametrize(
    ("impressions", "clicks", "said"),
    [
        (0, 0, ""),
        (1, 0, "open: 1 impression"),
        (0, 1, "open: 1 click without impression yet"),
        (2, 3, "open: 2 impressions, 3 clicks without impression yet"),
    ],
)
def test_what_is_open_is_told(impressions: int, clicks: int, said: str) -> None:
    assert _open({"impressions": impressions, "clicks": clicks}) == said
