"""UBI whose events name the arms of their documents: one duel per query."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamduel.formats import Ignored, UbiSettings
from streamduel.records import Click, Duel, Impression
from tests.unit.formats.samples import CLICK, CREDITED, QUERY, TS, changed, only, text, verdict
from tests.unit.stream.folding import Partition, config, letters

PAIR = ["bm25", "ltr-v1"]
BY_EVENT = UbiSettings(sides="events", pair=PAIR).translate


def event(query: str, action: str, arm: str | None, at: int, doc: str = "d1") -> dict[str, Any]:
    return changed(
        CREDITED,
        query_id=query,
        action_name=action,
        event_attributes__search_config=arm,
        event_attributes__object__object_id=doc,
        timestamp=TS + at,
    )


def test_a_click_is_an_impression_with_a_rank_per_side_and_a_click() -> None:
    time = TS + 5250
    impression = Impression("q-1", "search", "bm25", "ltr-v1", ["a", "b"], ts=time, client="c-1")
    id_ = f'["click","q-1","c-1","click",{time},"d2",2]'
    assert BY_EVENT(text(CREDITED)) == [
        impression,
        Click(id_, "search", "q-1", 1, ts=time, client="c-1"),
    ]
    other = text(CREDITED, event_attributes__search_config="bm25")
    assert BY_EVENT(other) == [
        impression,
        Click(id_, "search", "q-1", 0, ts=time, client="c-1"),
    ]


def test_a_shown_document_is_an_impression() -> None:
    shown = only(BY_EVENT(text(CREDITED, action_name="impression")))
    assert shown == Impression(
        "q-1", "search", "bm25", "ltr-v1", ["a", "b"], ts=TS + 5250, client="c-1"
    )
    other = UbiSettings(sides="events", pair=PAIR, shown=["view"]).translate
    assert only(other(text(CREDITED, action_name="view"))) == shown
    assert verdict(other, text(CREDITED, action_name="impression")) == "ignored: impression"


@pytest.mark.parametrize(
    "attributes",
    [
        {"search_config": "ltr-v1"},
        {"object": {"object_id": "d2", "search_config": "ltr-v1"}},
        {"object": {"object_id": "d2", "search_configuration_uuid": "ltr-v1"}},
    ],
    ids=["shop", "generator", "workbench"],
)
def test_known_paths_of_the_side(attributes: dict[str, Any]) -> None:
    record = changed(CLICK, event_attributes={"experiment": "search", **attributes})
    assert BY_EVENT(text(record))[1].rank == 1  # type: ignore[union-attr]


def test_events_may_name_the_pair_and_arms_may_have_other_names() -> None:
    translate = UbiSettings(sides="events", arms={"teamB": "ltr-v1"}).translate
    named = changed(CREDITED, event_attributes__a="teamB", event_attributes__b="dense")
    shown, click = translate(text(named, event_attributes__epoch=3))
    assert isinstance(shown, Impression)
    assert isinstance(click, Click)
    assert (shown.a, shown.b, shown.epoch, click.rank) == ("ltr-v1", "dense", 3, 0)


def test_an_arm_served_alone_is_a_duel_without_winner() -> None:
    named = changed(CREDITED, event_attributes__a="ltr-v1", event_attributes__b="ltr-v1")
    assert only(BY_EVENT(text(named))) == Duel(
        "q-1", "search", "ltr-v1", "ltr-v1", None, TS + 5250, client="c-1"
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (QUERY, "query"),
        (changed(QUERY, query_id=None), "query"),
        (CLICK, "click without side"),
        (changed(CLICK, action_name="impression"), "impression without side"),
        (changed(CREDITED, action_name="search"), "search"),
        (changed(CREDITED, query_id=None), "click without query"),
        (changed(CREDITED, event_attributes__experiment=None), "no experiment"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_events_without_a_side_are_ignored(record: dict[str, Any], reason: str) -> None:
    assert verdict(BY_EVENT, text(record)) == f"ignored: {reason}"


def test_a_side_outside_the_pair_is_rejected() -> None:
    assert verdict(BY_EVENT, text(CREDITED, event_attributes__search_config="dense")) == (
        "invalid_record: event_attributes.search_config must be 'bm25' or 'ltr-v1' (found 'dense')."
    )


def test_an_unknown_pair_is_rejected() -> None:
    assert verdict(UbiSettings(sides="events").translate, text(CREDITED)) == (
        "invalid_record: the event names no arms in query_attributes.a and"
        " query_attributes.b, and no pair is configured."
    )


def test_the_fold_makes_one_duel_of_all_clicks_of_a_query() -> None:
    log = [
        event("q-1", "click", "ltr-v1", 10),  # before its impression
        event("q-1", "impression", "bm25", 20),
        event("q-1", "impression", "ltr-v1", 20, "d2"),
        event("q-1", "click", "bm25", 30),
        event("q-1", "click", "ltr-v1", 40, "d2"),
        event("q-1", "click", "ltr-v1", 40, "d2"),  # sent twice
        event("q-2", "click", "bm25", 50),
        event("q-2", "click", None, 60),  # on a document of neither
        event("q-3", "impression", "ltr-v1", 70),  # and never a click
        event("q-4", "click", "bm25", 2000),  # when the windows of the others are over
    ]
    partition = Partition(config(search={"arms": PAIR, "join_window_ms": 1000}))
    for record in log:
        try:
            translated = BY_EVENT(text(record))
        except Ignored:
            continue
        for it in translated:
            assert not letters(partition.fold_at(None, msgspec.json.encode(it)))
    assert partition.duels() == 3  # q-1 for ltr-v1, q-2 for bm25, q-3 for neither
    assert partition.wins() == [[0.0, 1.5], [1.5, 0.0]]
    # Four impressions and five clicks. Of q-1, four more impressions and a click came again.
    assert partition.tallies() == {
        "accepted": 9, "duplicate": 6, "dead_letter": 0, "late": 0, "unjoined": 0, "capped": 0,
    }  # fmt: skip
