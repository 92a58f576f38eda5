"""UBI whose queries name the arms of their documents: impressions and clicks."""

from __future__ import annotations

from typing import Any

import pytest

from streamduel.formats import Translator, UbiSettings
from streamduel.records import Click, Control, Duel, Impression, Rejected
from streamduel.stream.decode import RecordDecoder
from tests.unit.formats.samples import CLICK, QUERY, TS, changed, only, text, verdict

BY_RECORD = UbiSettings().translate
ARM = "an arm's name, a string of 1 to 256 characters"


def ubi(**settings: Any) -> Translator:
    return UbiSettings(**settings).translate


def test_a_query_that_names_its_teams_is_an_impression() -> None:
    assert BY_RECORD(text(QUERY)) == [
        Impression(
            "q-1",
            "search",
            "bm25",
            "ltr-v1",
            ["a", "b", None],
            ["d1", "d2", "d3"],
            epoch=17,
            ts=TS,
            client="c-1",
            query="red shoes",
        )
    ]


def test_a_click_names_its_query_and_its_document() -> None:
    assert BY_RECORD(text(CLICK)) == [
        Click(
            f'["click","q-1","c-1","click",{TS + 5250},"d2",2]',
            "search",
            impression="q-1",
            doc="d2",
            ts=TS + 5250,
            client="c-1",
        )
    ]


def test_a_client_or_a_query_of_another_form_is_no_mistake() -> None:
    long = only(BY_RECORD(text(QUERY, client_id="c" * 300, user_query="q" * 2000)))
    assert long.client.startswith("sha256:")
    assert long.query == "q" * 1024
    other = only(BY_RECORD(text(QUERY, client_id={"id": 7}, user_query=["red"])))
    assert (other.client, other.query) == (None, None)
    assert only(BY_RECORD(text(QUERY, client_id=7))).client == "7"


@pytest.mark.parametrize(
    "name", ["query_response_object_ids", "query_response_objects_ids"], ids=str
)
def test_older_names_of_the_documents_are_known(name: str) -> None:
    hits = QUERY["query_response_hit_ids"]
    older = changed(QUERY, query_response_hit_ids=..., **{name: hits})
    assert only(BY_RECORD(text(older))).docs == hits


def test_documents_may_be_numbers() -> None:
    assert only(BY_RECORD(text(QUERY, query_response_hit_ids=[1, 22, 333]))).docs == [
        "1", "22", "333",
    ]  # fmt: skip
    assert only(BY_RECORD(text(CLICK, event_attributes__object__object_id=22))).doc == "22"


@pytest.mark.parametrize(
    ("teams", "sides"),
    [
        (["ltr-v1", "ltr-v1", "bm25"], ["b", "b", "a"]),
        (["b", "a", "a"], ["b", "a", "a"]),
        ({"d3": "bm25", "d1": "ltr-v1", "d9": "bm25"}, ["b", None, "a"]),
        (["ltr-v1", "", "bm25"], ["b", None, "a"]),
        ({"d3": "bm25", "d1": "ltr-v1", "d2": ""}, ["b", None, "a"]),
    ],
    ids=["arms", "sides", "by document", "an empty text", "an empty text by document"],
)
def test_teams_may_be_arms_or_sides_by_rank_or_by_document(teams: Any, sides: list[str]) -> None:
    assert only(BY_RECORD(text(QUERY, query_attributes__teams=teams))).teams == sides


def test_a_query_may_have_an_empty_action() -> None:
    assert BY_RECORD(text(QUERY, action_name="")) == BY_RECORD(text(QUERY))


def test_an_arm_named_a_takes_precedence_over_the_side() -> None:
    query = changed(QUERY, query_attributes__a="b", query_attributes__b="a")
    event = only(BY_RECORD(text(query, query_attributes__teams=["a", "b", None])))
    assert (event.a, event.b, event.teams) == ("b", "a", ["b", "a", None])


def test_an_unnamed_pair_is_that_of_the_list() -> None:
    query = changed(QUERY, query_attributes__a=..., query_attributes__b=...)
    for shown, teams in (
        ([None, "ltr-v1", "bm25"], [None, "b", "a"]),
        ([None, "bm25", "ltr-v1"], [None, "a", "b"]),  # whichever is first
    ):
        event = only(BY_RECORD(text(query, query_attributes__teams=shown)))
        assert (event.a, event.b, event.teams) == ("bm25", "ltr-v1", teams)
    one = text(query, query_attributes__teams=["bm25", None, "bm25"])
    assert verdict(BY_RECORD, one) == "ignored: list of one side"
    event = only(ubi(pair=["dense", "bm25"])(one))
    assert (event.a, event.b, event.teams) == ("dense", "bm25", ["b", None, "b"])


def test_a_pair_in_the_query_takes_precedence_over_the_configured_one() -> None:
    event = only(ubi(pair=["dense", "hybrid"])(text(QUERY)))
    assert (event.a, event.b) == ("bm25", "ltr-v1")


def test_arms_may_have_other_names_in_the_log() -> None:
    named = ubi(arms={"bm25": "keyword", "ltr-v1": "tree"})
    event = only(named(text(QUERY)))
    assert (event.a, event.b, event.teams) == ("keyword", "tree", ["a", "b", None])


def test_a_list_of_one_arm_is_a_duel_without_winner() -> None:
    alone = changed(QUERY, query_attributes__b="bm25", query_attributes__teams=...)
    assert BY_RECORD(text(alone)) == [
        Duel("q-1", "search", "bm25", "bm25", None, TS, client="c-1", query="red shoes")
    ]


def test_without_documents_clicks_are_by_rank() -> None:
    by_rank = ubi(clicks_by="rank")
    assert only(by_rank(text(QUERY))).docs is None
    event = only(by_rank(text(CLICK)))
    assert (event.rank, event.doc) == (1, None)
    without = only(BY_RECORD(text(QUERY, query_response_hit_ids=None)))
    assert (without.docs, without.teams) == (None, ["a", "b", None])


@pytest.mark.parametrize(
    ("position", "first", "rank"),
    [
        ({"ordinal": 1}, 1, 0),
        ({"ordinal": 3}, 0, 3),
        ({"ordinal": {"index": 3}}, 1, 2),
        ({"ordinal": "3"}, 1, 2),
        ({"ordinal": 3.0}, 1, 2),
    ],
)
def test_ordinals_are_counted_from_1_or_from_0(position: Any, first: int, rank: int) -> None:
    nameless = changed(CLICK, event_attributes__object=None)
    translate = ubi(first_ordinal=first)
    event = only(translate(text(nameless, event_attributes__position=position)))
    assert (event.rank, event.doc) == (rank, None)


def test_only_the_configured_actions_are_clicks() -> None:
    translate = ubi(clicks={"add_to_cart": "cart"})
    assert only(translate(text(CLICK, action_name="add_to_cart"))).action == "cart"
    assert verdict(translate, text(CLICK)) == "ignored: click"
    for action in ("click", "click_through", "item_click"):
        assert only(BY_RECORD(text(CLICK, action_name=action))).action == "click"


def test_a_configured_experiment_takes_precedence_over_the_records() -> None:
    translate = ubi(experiment="ads")
    assert [only(translate(text(it))).experiment for it in (QUERY, CLICK)] == ["ads", "ads"]


def test_fields_may_have_other_paths() -> None:
    fields = {"experiment": "application", "doc": "event_attributes.object.internal_id"}
    translate = ubi(fields=fields)
    event = only(translate(text(CLICK, event_attributes__object__internal_id="i-2")))
    assert (event.experiment, event.doc) == ("shop", "i-2")


def test_an_export_gives_events_their_own_ids() -> None:
    def exported(record: dict[str, Any], id_: Any) -> bytes:
        return text({"_index": "ubi", "_id": id_, "_score": 1.0, "_source": record})

    assert only(BY_RECORD(exported(CLICK, "e-1"))).id == '["event","e-1"]'
    assert only(BY_RECORD(exported(CLICK, None))) == only(BY_RECORD(text(CLICK)))
    assert only(BY_RECORD(exported(QUERY, "e-2"))).id == "q-1"
    own = ubi(fields={"id": "event_id"})
    assert only(own(text(CLICK, event_id=7))).id == '["event","7"]'
    assert only(own(text(CLICK))).id == only(BY_RECORD(text(CLICK))).id


def test_the_id_of_a_click_is_composed_of_its_fields() -> None:
    others = [
        changed(CLICK, query_id="q-2"),
        changed(CLICK, client_id="c-2"),
        changed(CLICK, client_id=None),
        changed(CLICK, action_name="item_click"),
        changed(CLICK, timestamp="2026-09-21T14:13:25.251Z"),
        changed(CLICK, timestamp=None),
        changed(CLICK, event_attributes__object__object_id="d3"),
        changed(CLICK, event_attributes__position__ordinal=3),
    ]
    ids = [only(BY_RECORD(text(it))).id for it in (CLICK, *others)]
    assert len({*ids}) == len(ids)
    same = changed(CLICK, timestamp=TS + 5250, message="again", session_id=...)
    assert only(BY_RECORD(text(dict(reversed(same.items()))))).id == ids[0]


def test_an_id_that_is_too_long_is_hashed_on_both_sides_of_the_join() -> None:
    long = "q" * 257
    query, click = (only(BY_RECORD(text(it, query_id=long))) for it in (QUERY, CLICK))
    assert query.id == click.impression
    assert query.id.startswith("sha256:")
    query, click = (only(BY_RECORD(text(it, query_id=long[1:]))) for it in (QUERY, CLICK))
    assert query.id == click.impression == long[1:]
    assert click.id.startswith("sha256:")


def test_every_format_allows_control_records() -> None:
    pause = {"type": "control", "id": "c-1", "experiment": "search", "action": "pause"}
    assert BY_RECORD(text(pause)) == [Control("c-1", "search", "pause")]
    own = RecordDecoder(1000)
    apply = text(pause, action="apply", settings={"slate": 2, "stop": {"min_duels": 9}})
    assert BY_RECORD(apply) == [own(apply)]
    changes: list[dict[str, Any]] = [{"action": "puase"}, {"settings": {}}, {"id": ""}]
    for change in changes:
        with pytest.raises(Rejected) as refused:
            own(text(pause, **change))
        assert verdict(BY_RECORD, text(pause, **change)) == f"invalid_record: {refused.value}"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"index": {"_index": "ubi_events", "_id": "1"}}, "bulk action"),
        ({"create": {}}, "bulk action"),
        (changed(QUERY, query_id=None), "query without id"),
        (changed(QUERY, query_response_hit_ids=[]), "query without results"),
        (changed(QUERY, query_attributes=None), "no experiment"),
        (changed(QUERY, query_attributes__teams=...), "query without teams"),
        (changed(CLICK, action_name="page_exit"), "page_exit"),
        (changed(CLICK, action_name="x" * 100), "x" * 64),
        (changed(CLICK, query_id=""), "click without query"),
        (changed(CLICK, query_id=...), "click without query"),
        (changed(CLICK, event_attributes=None), "no experiment"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_records_without_a_duel_are_ignored(record: dict[str, Any], reason: str) -> None:
    assert verdict(BY_RECORD, text(record)) == f"ignored: {reason}"


def test_other_applications_are_ignored() -> None:
    translate = ubi(applications=["docs"])
    for record in (QUERY, CLICK, changed(CLICK, application=None)):
        assert verdict(translate, text(record)) == "ignored: another application"
    assert only(ubi(applications=["docs", "shop"])(text(CLICK))).doc == "d2"


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"hello": 1}, "the record must have an 'action_name', as events have, or a 'query_id'"
         " or a 'user_query', as queries have."),
        (changed(QUERY, query_id=["q"]), "query_id must be a string or an integer (found an array"
         " of 1)."),
        (changed(QUERY, query_response_hit_ids="d1"), "query_response_hit_ids must be an array of"
         " documents' ids (found 'd1')."),
        (changed(QUERY, query_response_hit_ids=["d1", None, "d3"]), "query_response_hit_ids[1] must"
         " be a document's id, a string of 1 to 1024 characters or an integer (found null)."),
        (changed(QUERY, query_attributes__a=None), f"query_attributes.a must be {ARM} (found"
         " null)."),
        (changed(QUERY, query_attributes__b=...), f"query_attributes.b must be {ARM} (found"
         " null)."),
        (changed(QUERY, query_attributes__teams=["a"]), "query_attributes.teams must be an array"
         " with an arm, or null, for each of 3 documents (found an array of 1)."),
        (changed(QUERY, query_attributes__teams="ab"), "query_attributes.teams must be an array"
         " with an arm, or null, for each rank (found 'ab')."),
        (changed(QUERY, query_attributes__teams=["a", 1, "b"]), "query_attributes.teams[1] must be"
         f" {ARM} (found 1)."),
        (changed(QUERY, query_attributes__teams=["a", "dense", "b"]), "query_attributes.teams must"
         " be 'bm25' or 'ltr-v1' (found 'dense')."),
        (changed(QUERY, query_attributes__epoch=0), "query_attributes.epoch must be an integer from"
         " 1 (found 0)."),
        (changed(QUERY, query_attributes__experiment=True), "query_attributes.experiment must be a"
         " string of 1 to 256 characters (found true)."),
        (changed(QUERY, timestamp="soon"), "timestamp must be a time since 1970, in ISO 8601 or in"
         " milliseconds (found 'soon')."),
        (changed(CLICK, action_name=3), "action_name must be a string of 1 to 256 characters (found"
         " 3)."),
        (changed(CLICK, event_attributes__object={}, event_attributes__position={}), "a click must"
         " name its place in event_attributes.object.object_id or"
         " event_attributes.position.ordinal.index."),
        (changed(CLICK, event_attributes__object={}, event_attributes__position__ordinal=0),
         "event_attributes.position.ordinal must be an integer from 1 (found 0)."),
        (changed(CLICK, event_attributes__object__object_id="d" * 1025),
         "event_attributes.object.object_id must be a document's id, a string of 1 to 1024"
         f" characters or an integer (found {'d' * 78!r}"[:-1] + "…)."),
    ],
    ids=range(17),
)  # fmt: skip
def test_invalid_records_are_rejected(record: dict[str, Any], sentence: str) -> None:
    assert verdict(BY_RECORD, text(record)) == f"invalid_record: {sentence}"


def test_by_rank_a_click_needs_an_ordinal() -> None:
    nowhere = text(CLICK, event_attributes__position=None)
    assert verdict(ubi(clicks_by="rank"), nowhere) == (
        "invalid_record: a click must name its place in event_attributes.position.ordinal.index."
    )
