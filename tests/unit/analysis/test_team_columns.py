"""Teams in a column whose name does not say that it has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import Row, check, json_lines, named, only, written

LISTS: dict[str, Callable[[Row], object]] = {
    "qid": lambda r: r["id"], "left": lambda r: r["a"], "right": lambda r: r["b"],
    "ranking": lambda r: [f"{r['id']}/{rank}" for rank in range(10)],
    "clicked_indices": lambda r: r["clicks"],
}  # fmt: skip

TEAMS: dict[str, Callable[[Row], object]] = {
    "sides": lambda r: r["teams"],
    "text": lambda r: "".join(r["teams"]).upper(),
    "names": lambda r: ", ".join(r[team] for team in r["teams"]),
}


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
@pytest.mark.parametrize("form", TEAMS)
@pytest.mark.parametrize("column", ["source", "drafted by"])
def test_their_values_tell_them(column: str, form: str, suffix: str, tmp_path: Path) -> None:
    rows = named(**LISTS, **{column: TEAMS[form]})
    check(only(written(tmp_path / f"x.{suffix}", rows, f"FORMAT {suffix}")))


@pytest.mark.parametrize(
    "value",
    [
        lambda r: "a" if r["clicks"] else "b",  # a group of users
        lambda r: [r["a"], r["b"]],
        lambda r: ["a"] * 10,
        lambda r: r["teams"][:-1],  # not one for each document
        lambda r: [*r["teams"][:-1], "c"],
    ],
)
def test_other_values_are_no_teams(value: Callable[[Row], object], tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", named(**LISTS, group=value))
    with pytest.raises(ConfigurationError, match=r"nothing in .* is recognised"):
        only(log)
