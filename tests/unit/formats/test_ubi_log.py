"""A whole log of User Behavior Insights, whose counts docs/formats.md shows.

It is the sample of the OpenSearch edition of Chorus, `ubi_queries_events.ndjson`, and no part of
the project: the variable UBI_LOG names it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamduel.formats import Ignored, UbiSettings
from streamduel.formats.reading import Found, milliseconds
from streamduel.records import InputEvent, Rejected
from streamduel.testing import Record
from tests.unit.stream.folding import Partition, config, letters

FILE = "UBI_LOG"
PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")

COUNTS = {
    "click": 298,
    "ignored: bulk action": 3921,
    "ignored: impression": 1999,
    "ignored: search": 506,
    "ignored: query without teams": 281,
    "ignored: add_to_cart": 234,
    "ignored: query without results": 192,
    "ignored: on_search": 86,
    "ignored: type_filter": 62,
    "ignored: view_search_results": 62,
    "ignored: global_click": 61,
    "ignored: brand_filter": 59,
    "ignored: product_sort": 56,
    "ignored: product_hover": 11,
    "ignored: purchase": 6,
    "ignored: declined_product": 5,
    "ignored: page_exit": 2,
    "ignored: 404_redirect": 1,
}


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    path = Path(os.environ.get(FILE, ""))
    if not path.is_file():
        pytest.skip(f"the log is not here; the variable {FILE} names the file.")
    return path.read_bytes().splitlines()


def kinds(lines: list[bytes], **settings: Any) -> tuple[Counter[str], list[InputEvent]]:
    """Lines by outcome, and their events."""
    translate = UbiSettings(experiment="search", **settings).translate
    counts: Counter[str] = Counter()
    events: list[InputEvent] = []
    for line in lines:
        try:
            translated = translate(line)
        except Ignored as ignored:
            counts[f"ignored: {ignored.reason}"] += 1
        except Rejected as rejected:
            counts[f"rejected: {rejected.sentence}"] += 1
        else:
            counts.update(type(event).__name__.lower() for event in translated)
            events += translated
    return counts, events


def with_teams(lines: list[bytes]) -> list[dict[str, Any]]:
    """The records in the order of their times, as if each list had been interleaved."""
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    records = [record for record in records if "index" not in record]
    for record in records:
        hits = record.get("query_response_hit_ids")
        if hits:
            teams = [("x", "y")[rank % 2] for rank in range(len(hits))]
            record["query_attributes"] = {"a": "x", "b": "y", "teams": teams}
    return sorted(records, key=lambda it: milliseconds(Found("timestamp", it["timestamp"])) or 0)


def test_the_page_shows_the_counts() -> None:
    rows = re.findall(r"^\| (click|ignored: [^|]+) \| ([\d,]+) \|", PAGE, re.MULTILINE)
    assert {kind: int(number.replace(",", "")) for kind, number in rows} == COUNTS


def test_each_line_becomes_what_the_page_says(lines: list[bytes]) -> None:
    counts, events = kinds(lines)
    assert counts == COUNTS
    assert sum(counts.values()) == len(lines) == 7842
    assert len({event.id for event in events}) == len(events)


def test_each_line_is_counted_once(lines: list[bytes]) -> None:
    settings = {"source": {"format": {"name": "ubi", "experiment": "search"}}}
    partition = Partition(config(**settings))
    partition.task.fold([Record(offset, line) for offset, line in enumerate(lines)])
    ignored = sum(json.loads(partition.task.take_commit().entries["partition"])["ignored"].values())
    waiting = partition.task.experiments["search"].open["clicks"]
    tallies = partition.tallies()
    told = [tallies[it] for it in ("accepted", "duplicate", "late", "unjoined", "dead_letter")]
    assert sum(told) + ignored + waiting == len(lines)
    row = " | ".join(f"{count:,}" for count in (*told, ignored, waiting, len(lines)))
    assert f"| {row} |" in PAGE


def test_its_events_name_no_sides(lines: list[bytes]) -> None:
    counts, events = kinds(lines, sides="events", pair=["x", "y"])
    assert not events
    assert counts["ignored: click without side"] == 287
    assert counts["ignored: item_click without side"] == 11
    assert counts["ignored: impression without side"] == 1999
    assert counts["ignored: query"] == 473


def test_its_clicks_find_their_queries(lines: list[bytes]) -> None:
    _, events = kinds([json.dumps(record).encode() for record in with_teams(lines)])
    partition = Partition(config(search={"arms": ["x", "y"]}))
    told: Counter[str] = Counter()
    for event in events:
        commit = partition.fold_at(None, msgspec.json.encode(event))
        told.update(re.sub("'[^']*'", "…", letter["error"]) for letter in letters(commit))
    # 78 lists and 185 of 298 clicks. Three lists are second pages, with the id of the first.
    assert partition.tallies() == {
        "accepted": 263, "duplicate": 3, "dead_letter": 6, "late": 2, "unjoined": 105, "capped": 0,
    }  # fmt: skip
    assert told == {"the click names the document …, which impression … has not.": 6}
