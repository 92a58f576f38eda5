"""The files that the arguments of `analyze` name."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.inputs import paths
from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import only


def winners(path: Path, winner: str, n: int = 200) -> Path:
    """A table in which one ranker wins all duels."""
    path.write_text("left,right,winner\n" + f"x,y,{winner}\n" * n)
    return path


@pytest.mark.parametrize(
    ("name", "other"),
    [("log[1].csv", "log1.csv"), ("s*r.csv", "star.csv"), ("lo?.csv", "log.csv")],
)
def test_a_name_with_signs_of_a_pattern_is_that_file_only(
    tmp_path: Path, name: str, other: str
) -> None:
    winners(tmp_path / other, "right")
    found = only(winners(tmp_path / name, "left"))
    assert (found.champion, found.duels) == ("x", 200)


def test_a_pattern_that_names_no_file_names_those_that_match(tmp_path: Path) -> None:
    for name in ("log1.csv", "log[2].csv"):
        winners(tmp_path / name, "left", 50)
    assert only(tmp_path / "log*.csv").duels == 100
    assert only(tmp_path / "log[12].csv").duels == 50


def test_a_name_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    winners(tmp_path / "~log.csv", "left", 50)
    monkeypatch.chdir(tmp_path)
    assert only(Path("~log.csv")).duels == 50


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="found ''"):
        paths("")
    with pytest.raises(ConfigurationError, match="LOG must be a file"):
        analyze(Request([""]))
