"""The answer of an experiment, as `run` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.preference.verdict import INTERVALS
from streamduel.testing import encode
from tests.unit.cli.commands import Streamduel, configure, run


def answer(folder: Path, wins: dict[str, int], **settings: Any) -> str:
    """The sentence above the table; see `shown`."""
    return shown(folder, wins, **settings).splitlines()[0]


def shown(folder: Path, wins: dict[str, int], **settings: Any) -> str:
    """What `run` prints.

    Args:
        folder: for the service.
        wins: for two arms, of one letter each, how many of 1,000 duels the first one won.
        settings: of the experiment.
    """
    records = [
        {"type": "duels", "id": pair, "experiment": "search", "a": pair[0], "b": pair[1],
         "wins_a": won, "wins_b": 1000 - won, "ties": 0}
        for pair, won in wins.items()
    ]  # fmt: skip
    (folder / "clicks.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in records))
    changes = {"arms": sorted(set("".join(wins))), **settings}
    config = configure(
        folder, {f"experiments.search.{key}": value for key, value in changes.items()}
    )
    done = run(config, "--until-end")
    assert done.status == 0, done.err
    return done.out


@pytest.mark.parametrize("policy", ["top_two", "double_thompson"])
def test_a_cycle_has_no_winner_whichever_is_sought(tmp_path: Path, policy: str) -> None:
    found = answer(tmp_path, {"rp": 700, "ps": 700, "sr": 700}, policy={"name": policy})
    start, end = "search: no arm beats all others; champion ", " beats as many as any, "
    assert found.startswith(start)
    assert found.endswith(f"{end}confidence 99.9 %")


def test_that_none_beat_all_others_is_told_after_later_duels(tmp_path: Path) -> None:
    found = answer(tmp_path, {"rp": 700, "ps": 700, "sr": 700, "pr": 700})
    assert found.startswith("search: champion ")
    assert found.endswith("; no arm beat all others at the end, later duels lowered the evidence")


def test_where_none_beats_all_others_another_arm_may_beat_more(tmp_path: Path) -> None:
    wins = {"rp": 700, "ps": 700, "sq": 700, "qr": 700, "rs": 500, "pq": 500}
    found = answer(tmp_path, wins)
    assert found.startswith("search: no arm beats all others; ")
    assert found.endswith(" is the champion, but another one may beat more")


def test_none_beats_all_others_although_the_champion_has_no_evidence(tmp_path: Path) -> None:
    wins = {"ab": 600, "bc": 600, "ca": 600, "ad": 600, "db": 501, "dc": 501}
    out = shown(tmp_path, wins, policy={"name": "rucb"}, seed=1)
    assert out.splitlines()[0] == (
        "search: no arm beats all others; d is the champion, but another one may beat more"
    )
    assert "champion wins" in out


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_no_arm_is_better_by_a_difference_that_matters(tmp_path: Path, confidence: float) -> None:
    found = answer(
        tmp_path,
        {"ab": 510, "ac": 650, "bc": 650},
        smallest_difference=0.04,
        stop={"confidence": confidence},
    )
    assert found == (
        "search: champion a, no arm beats it by more than 0.04, confidence at least 93.2 %"
        if confidence == 0.8
        else "search: champion a, confidence 0.0 %, 50.0 % of the evidence for 95 %"
    )


def test_a_sure_champion_needs_no_more_evidence(tmp_path: Path) -> None:
    lines = shown(tmp_path, {"ab": 700}).splitlines()
    assert lines[0] == "search: champion a, confidence at least 99.9 %"
    assert "1 accepted" in lines  # outcomes without records are left out


def test_a_stop_at_less_than_95_percent_has_a_champion(tmp_path: Path) -> None:
    assert answer(tmp_path, {"ab": 545}, stop={"confidence": 0.8}) == (
        "search: champion a, confidence at least 88.7 %, 78.0 % of the evidence for 95 %"
    )


@pytest.mark.parametrize(
    ("won", "sure", "says_so"), [(540, False, False), (558, True, True), (580, True, False)]
)
def test_a_sure_champion_may_have_intervals_that_include_half(
    streamduel: Streamduel, tmp_path: Path, won: int, sure: bool, says_so: bool
) -> None:
    out = shown(tmp_path, {f"a{rival}": won for rival in "bcdef"})
    assert ("confidence at least 9" in out) == sure
    assert (INTERVALS in out) == says_so
    log, page = tmp_path / "log.csv", tmp_path / "page.html"
    rows = "".join(f"a,{rival},{won},{1000 - won}\n" for rival in "bcdef")
    log.write_text(f"ranker_a,ranker_b,wins_a,wins_b\n{rows}")
    out = streamduel("analyze", log, "--report", page).out
    assert ("a wins with 9" in out) == sure
    assert (INTERVALS in " ".join(out.split())) == says_so
    assert INTERVALS in page.read_text()
