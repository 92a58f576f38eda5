"""Segments of a finished click log, as `inspect` shows them."""

from __future__ import annotations

from pathlib import Path

from streamduel.testing import encode
from tests.unit.cli.commands import Streamduel, configure, inspected, run


def test_inspect_shows_each_segment(streamduel: Streamduel, tmp_path: Path) -> None:
    records = [
        {"type": "duels", "id": f"{segment}-{loser}", "experiment": "search", "a": winner,
         "b": loser, "wins_a": 700, "wins_b": 300, "ties": 0, "segment": segment}
        for segment, winner, others in (
            ("navigational", "x", ["y", "z"]), ("informational", "y", ["x", "z"]),
        )
        for loser in others
    ]  # fmt: skip
    (tmp_path / "clicks.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in records))
    kinds = {"class": ["navigational", "informational"]}
    config = configure(
        tmp_path, {"experiments.search.arms": ["x", "y", "z"], "experiments.search.segments": kinds}
    )
    done = run(config, "--until-end")
    assert done.status == 0, done.err
    found = inspected(streamduel, tmp_path)["experiments"]["search"]
    classes = found["segments"]["class"]
    assert {name: each["champion"] for name, each in classes.items()} == {
        "navigational": "x", "informational": "y",
    }  # fmt: skip
    assert classes["navigational"]["duels"] == 2000
    assert classes["navigational"]["confidence"] > 0.99
    assert found["disagreements"]["class"]["verdict"] == "opposite"
    out = streamduel("inspect", config).out
    sentence = found["disagreements"]["class"]["sentence"]
    for words in ("navigational", "informational", f"\n{sentence}\n", "2,000"):
        assert words in out


def test_long_names_of_arms_are_shown_whole(tmp_path: Path) -> None:
    arms = [f"ltr-2026-10-01-with-embeddings-v{n}" for n in (1, 2)]
    record = {"type": "duels", "id": "d", "experiment": "search", "a": arms[0], "b": arms[1],
              "wins_a": 700, "wins_b": 300, "ties": 0}  # fmt: skip
    (tmp_path / "clicks.jsonl").write_bytes(encode(record) + b"\n")
    done = run(configure(tmp_path, {"experiments.search.arms": arms}), "--until-end")
    assert done.status == 0, done.err
    table = [line.split("│") for line in done.out.splitlines() if line.startswith("│")]
    assert "".join(row[1].strip() for row in table) == "".join(arms)
