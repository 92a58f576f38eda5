"""The tables of `streamduel simulate`, compared with its report."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from streamduel.cli.simulate_tables import print_titled, table_of_numbers
from tests.unit.cli.commands import Streamduel, table_rows
from tests.unit.cli.simulating import loaded


def test_the_tables_have_the_numbers_of_the_report(streamduel: Streamduel, tmp_path: Path) -> None:
    """The end of each run counts; the smallest regret comes first, and the soonest answer."""
    (tmp_path / "p.txt").write_text("0.5 0.6 0.65\n0.4 0.5 0.6\n0.35 0.4 0.5\n")
    result = streamduel(
        "simulate", "--matrix", tmp_path / "p.txt", "--policy", "uniform", "--policy", "top_two",
        "--policy", "rucb", "--horizon", 200, "--runs", 20, "--until-sure", 0.6, "--seed", 1,
        "--jobs", 1, "--json", tmp_path / "r.json",
    )  # fmt: skip
    assert result.status == 0, result.err
    found = {it["name"]: it for it in loaded(tmp_path / "r.json")["policies"]}
    rows = table_rows(result.out)
    assert [row[:-1] for row in rows[:3]] == [
        [
            name,
            f"{found[name]['mean'][-1]:,.1f}",
            f"{found[name]['std_error'][-1]:,.1f}",
            f"{found[name]['champion_accuracy'][-1]:.0%}",
            "20",
        ]
        for name in ("top_two", "rucb", "uniform")
    ]
    sure = {name: it["sure"] for name, it in found.items()}
    assert [sure[name]["never"] for name in ("top_two", "uniform", "rucb")] == [5, 19, 13]
    assert rows[3:] == [
        [
            name,
            median,
            "never",
            f"{sure[name]['regret']:,.1f}",
            f"{sure[name]['never']}",
            f"{sure[name]['wrong']}",
        ]
        for name, median in (("top_two", "157"), ("uniform", "never"), ("rucb", "never"))
    ]


@pytest.mark.parametrize("width", [20, 50, 53, 80])
def test_a_narrow_terminal_hides_no_name(width: int) -> None:
    console = Console(file=StringIO(), width=width)
    numbers = ["8,809,123,456", "11,231,123,456", "88", "112", "0 of 3"]
    table = table_of_numbers(["method", *numbers], [["interleaving by top_two", *numbers]])
    with console.capture() as shown:
        print_titled(console, "plan", table)
    lines = [line.split("│") for line in shown.get().splitlines() if "│" in line]
    assert [cell.strip() for cell in lines[0][2:7]] == numbers
    assert "".join(line[1].replace(" ", "") for line in lines) == "interleavingbytop_two"
