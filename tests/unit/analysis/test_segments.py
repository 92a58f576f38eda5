"""Segments have champions of their own, and disagree only by more than chance."""

from __future__ import annotations

from pathlib import Path

from streamduel.analysis.wording import verdict
from tests.unit.analysis.exports import Row, json_lines, lists, only


def test_segments_that_disagree_are_told(tmp_path: Path) -> None:
    rows = lists(6000, lambda row: 0.62 if row["country"] == "de" else 0.38, clients=10**6)
    found = only(json_lines(tmp_path / "x.json", rows))

    assert found.champion is None
    assert found.segments["country"]["de"].champion == "ltr"
    assert found.segments["country"]["fr"].champion == "bm25"
    disagreement = found.disagreements["country"]
    assert disagreement.verdict == "opposite"
    assert "bm25 over ltr" in disagreement.sentence
    assert verdict(found).endswith("Segments by country prefer different rankers.")
    parts = found.segments["country"].values()
    assert sum(part.duels for part in parts) == found.duels


def test_segments_of_several_kinds_and_of_objects(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"type": "interleaving", "experiment": "search", **row,
         "segment": {"class": row["country"], "phase": "late" if number % 2 else "early"}}
        for number, row in enumerate(lists(3000))
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))

    assert set(found.segments["class"]) == {"de", "fr"}
    assert set(found.segments["phase"]) == {"early", "late"}
    assert {each.verdict for each in found.disagreements.values()} == {"none"}
    assert "Segments" not in verdict(found)


def test_segments_are_columns_that_are_named(tmp_path: Path) -> None:
    rows = [{**row, "shop": "A" if number % 3 else "B"} for number, row in enumerate(lists(900))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=shop"])

    assert set(found.segments) == {"shop"}
    assert found.segments["shop"]["A"].duels == 600


def test_looking_at_many_segments_costs_confidence(tmp_path: Path) -> None:
    rows = [{**row, "segment": f"part {number % 20}"} for number, row in enumerate(lists(4000))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=segment"])
    alone = only(json_lines(tmp_path / "y.json", rows[::20]))

    one = found.segments["segment"]["part 0"]
    assert one.duels == alone.duels
    assert one.confidence == max(0.0, 1 - 20 * (1 - alone.confidence))


def test_many_segments_are_bounded(tmp_path: Path) -> None:
    rows = [{**row, "segment": f"part {number}"} for number, row in enumerate(lists(300))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=segment"])

    assert len(found.segments["segment"]) == 20


def test_arms_served_alone_are_no_duels_of_a_segment(tmp_path: Path) -> None:
    duel = {"type": "duel", "experiment": "search", "a": "x", "segment": "phone"}
    rows: list[Row] = [
        *({**duel, "id": f"d{n}", "b": "y", "winner": "a"} for n in range(20)),
        *({**duel, "id": f"s{n}", "b": "x", "winner": None} for n in range(30)),
    ]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.duels, found.segments["segment"]["phone"].duels) == (50, 20)
