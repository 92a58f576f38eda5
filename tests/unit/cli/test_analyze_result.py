"""What `streamduel analyze` prints of a result, and the bounds of its options."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.analysis.exports import json_lines, lists
from tests.unit.cli.commands import Streamduel


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return json_lines(tmp_path / "log.json", lists(200))


def test_pairs_are_seen_from_the_leader_or_from_the_ranker_that_is_ahead(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    duels = "x,y,y\n" * 20 + "y,z,z\n" * 20 + "w,z,z\n" * 20 + "x,z,x\n" * 20
    path.write_text(f"ranker_a,ranker_b,winner\n{duels}")
    out, text = streamduel("analyze", path, "--report", page).out, page.read_text()
    assert "; z is ahead" in out
    for first, second, rate in (("z", "y", 1), ("z", "w", 1), ("y", "x", 1), ("z", "x", 0)):
        assert re.search(rf"{first} against {second} │ +20 │ +{rate}\.000", out)
        assert f'<bdi>{first}</bdi> <span class="hint">against</span> <bdi>{second}</bdi>' in text


def test_none_of_several_that_beat_equally_many_is_ahead(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("ranker_a,ranker_b,winner\n" + "p,q,p\n" * 20 + "r,s,r\n" * 30)
    out = streamduel("analyze", path).out
    assert "; 2 rankers beat 1 other each, and none beats more." in " ".join(out.split())
    assert "is ahead" not in out


def test_experiments_that_are_left_out_are_counted_beyond_the_first(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    rare = "".join(f"e{n},x,y,y\n" for n in range(40))
    path.write_text("experiment,ranker_a,ranker_b,winner\n" + "shop,x,y,y\n" * 1000 + rare)
    lines = streamduel("analyze", path, "--report", page).out.splitlines()
    assert lines[-1] == "20 more experiments left out"
    assert lines[-2].startswith("experiment e")
    assert "<dt>more experiments left out</dt><dd>10</dd>" in page.read_text()


def test_rankers_with_a_common_beginning_can_be_told_apart(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    first, second = (f"learning-to-rank-model-with-embeddings-and-freshness-v{n}" for n in (1, 2))
    path.write_text("ranker_a,ranker_b,winner\n" + f"{first},{second},{second}\n" * 200)
    out = streamduel("analyze", path, "--report", page).out
    assert f"{second} wins with 99.9 %" in " ".join(out.split())
    assert "ness-v2 against" in out
    for name in (first, second):
        assert name in page.read_text()


def test_failed_checks_are_told_with_the_result(streamduel: Streamduel, tmp_path: Path) -> None:
    path, found = tmp_path / "log.csv", tmp_path / "found.json"
    path.write_text("ranker_a,ranker_b,teams,clicks\n" + "bm25,hybrid,ab,[0]\n" * 300)
    lines = streamduel("analyze", path, "--json", found).out.splitlines()

    assert lines[0].startswith("experiment: bm25 wins with 99.9 %")
    assert lines[1] == (
        "Do not rely on this result yet: the checks team fairness, sample ratio failed."
    )
    assert json.loads(found.read_text())["experiments"]["experiment"]["champion"] == "bm25"


@pytest.mark.parametrize("window", [2**53 + 1, 2**63 - 1, 10**22])
def test_a_join_window_is_bounded(streamduel: Streamduel, log: Path, window: int) -> None:
    result = streamduel("analyze", log, "--join-window-ms", window)
    assert result.status == 2
    assert f"(found '{window}')" in " ".join(result.err.split())
