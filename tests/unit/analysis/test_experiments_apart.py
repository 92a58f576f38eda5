"""What is said about an experiment depends on its own records only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamduel.analysis.analyze import Request, analyze
from tests.unit.analysis.exports import START, Row, json_lines, lists


def sound() -> list[Row]:
    """Lists with their clicks, some of them repeated, and counts of two segments."""
    rows: list[Row] = []
    for row in lists(400):
        clicks, country = row.pop("clicks"), row.pop("country")
        rows.append({"type": "impression", "experiment": "search", **row, "segment": country})
        rows += [
            {"type": "click", "experiment": "search", "id": f"c-{row['id']}-{rank}",
             "impression": row["id"], "rank": rank, "ts": row["ts"] + 5}
            for rank in clicks
        ]  # fmt: skip
    counts = {"a": "bm25", "b": "ltr", "wins_a": 90, "wins_b": 30, "ties": 0, "ts": START}
    return [
        *rows,
        *rows[:20],
        *({"type": "duels", "experiment": "search", "id": each, "segment": each, **counts}
          for each in ("de", "fr")),
    ]  # fmt: skip


def ads(kind: str, **fields: object) -> Row:
    return {"type": kind, "experiment": "ads", "a": "x", "b": "y", "ts": START, **fields}


def duels(name: str, number: int, **fields: object) -> list[Row]:
    return [ads("duel", **{"id": f"{name}{n}", "winner": "a", **fields}) for n in range(number)]


def click(name: str, impression: str, ts: int) -> Row:
    return {"type": "click", "experiment": "ads", "id": name, "impression": impression, "rank": 0,
            "ts": ts}  # fmt: skip


FAULTY: Final[list[Row]] = [
    *duels("sound", 300),
    *(click(f"l{n}", "none", START) for n in range(300)),
    *(ads("impression", id=f"i{n}", teams=["a", "b"]) for n in range(300)),
    *(click(f"k{n}", f"i{n}", START + 5) for n in range(300)),
    *(ads("interleaving", id=f"u{n}", teams=["a", "a", "b", "a"], clicks=[0]) for n in range(300)),
    *duels("unusable", 300, winner="void"),
    *duels("repeated", 150),
    *duels("repeated", 150, winner="b"),
    *duels("old", 300, ts=5),
    *(each for n in range(15) for each in duels(f"segment{n}-", 20, segment=str(n))),
    *duels("retired", 300, b="z"),
    {"type": "control", "experiment": "ads", "id": "gone", "action": "retire_arm", "arm": "z",
     "ts": START + 900},
    {"type": "control", "experiment": "ads", "id": "ties", "action": "apply",
     "settings": {"ties": "drop"}, "ts": START + 900},
]  # fmt: skip
"""Records of another experiment, with what the checks look for."""


def test_another_experiment_changes_nothing(tmp_path: Path) -> None:
    one = json_lines(tmp_path / "one.jsonl", sound())
    both = json_lines(tmp_path / "both.jsonl", [*sound(), *FAULTY])
    alone = analyze(Request([str(one)])).experiments["search"]
    among = analyze(Request([str(both)])).experiments["search"]
    assert among.checks == alone.checks
    assert among.segments == alone.segments
    assert among.tallies == alone.tallies
