"""Which of the newest records count, where one record is several events."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamduel import doctor
from streamduel.config import load
from tests.unit.cli.commands import configure

NOW = int(1000 * time.time())
FORMAT = {
    "name": "ubi", "experiment": "search", "sides": "events", "pair": ["bm25", "ltr-v1"],
}  # fmt: skip


def event(query: int, doc: int, action: str = "click") -> str:
    record = {
        "action_name": action, "query_id": f"q{query}", "client_id": "c",
        "timestamp": NOW + doc,
        "event_attributes": {"search_config": "bm25", "object": {"object_id": f"d{doc}"}},
    }  # fmt: skip
    return json.dumps(record)


def records(folder: Path, lines: list[str], **settings: Any) -> tuple[str, str]:
    """The verdict on the newest records, and its sentence."""
    (folder / "clicks.jsonl").write_text("".join(f"{line}\n" for line in lines))
    changes = {f"experiments.search.{key}": value for key, value in settings.items()}
    config = configure(folder, {"source.format": FORMAT, **changes})
    (found,) = [it for it in doctor.examine(load(config)) if it.name == "records"]
    return found.verdict, found.sentence


CLICKS = [event(query, doc) for query in range(2) for doc in range(10)]


@pytest.mark.parametrize(
    ("lines", "verdict", "counts"),
    [
        (CLICKS, "fine", "20 records: 20 valid, 0 dead letters."),
        (CLICKS * 2, "fine", "40 records: 20 valid, 0 dead letters, 20 duplicates."),
        ([*CLICKS, CLICKS[0], "{"], "warning", "22 records: 20 valid, 1 dead letter, 1 duplicate."),
        (
            [*CLICKS, event(1, 0, "impression"), event(1, 0, "scroll")],
            "fine",
            "22 records: 20 valid, 0 dead letters, 1 duplicate, 1 ignored.",
        ),
    ],
)
def test_a_record_of_several_events_is_counted_once(
    tmp_path: Path, lines: list[str], verdict: str, counts: str
) -> None:
    assert records(tmp_path, lines) == (verdict, f"among the newest {counts}")


def test_a_record_is_capped_if_all_of_its_events_are(tmp_path: Path) -> None:
    shown = [event(query, 0, "impression") for query in range(3)]
    found = records(tmp_path, [*shown, shown[2], event(2, 1)], max_per_client=2)
    counts = "3 valid, 0 dead letters, 1 duplicate, 1 capped."
    assert found == ("fine", f"among the newest 5 records: {counts}")
