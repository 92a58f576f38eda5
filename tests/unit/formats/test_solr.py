"""Responses of Solr's learning to rank, and their clicks."""

from __future__ import annotations

from typing import Any

import pytest

from streamduel.formats import SolrSettings, Translator
from streamduel.records import Click, Control, Duel, Impression
from tests.unit.formats.samples import RESPONSE, SOLR_CLICK, TS, changed, only, text, verdict

ARMS = {"_OriginalRanking_": "bm25"}
SOLR = SolrSettings(arms=ARMS).translate
DOCS = RESPONSE["docs"]


def solr(**settings: Any) -> Translator:
    return SolrSettings(arms=ARMS, **settings).translate


def teams(**changes: Any) -> list[str | None]:
    listed: list[str | None] = only(SOLR(text(RESPONSE, **changes))).teams
    return listed


def rq(models: str, rest: str = "reRankDocs=10") -> str:
    return "{!ltr " + models + " " + rest + "}"


def test_a_response_is_an_impression() -> None:
    # Two documents are interleaved: what Solr says of the third means nothing.
    assert SOLR(text(RESPONSE)) == [
        Impression("q-1", "search", "ltr-v1", "bm25", ["b", "a", None], ["d1", "d2", "d3"], ts=TS)
    ]


def test_the_whole_response_body_of_solr_is_accepted() -> None:
    body = {
        "type": "response", "query_id": "q-1", "timestamp": "2026-09-21T14:13:20Z",
        "experiment": "search",
        "responseHeader": {"status": 0, "QTime": 3, "params": {"rq": RESPONSE["rq"]}},
        "response": {"numFound": 3, "start": 0, "docs": DOCS},
    }  # fmt: skip
    assert SOLR(text(body)) == SOLR(text(RESPONSE))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (rq("model=ltr-v1 model=_OriginalRanking_"), ["b", "a", "a"]),
        (rq("model='ltr-v1' model=\"_OriginalRanking_\""), ["b", "a", "a"]),
        (rq("efi.words='model=dense model=x' model=ltr-v1 model=_OriginalRanking_"),
         ["b", "a", "a"]),
        (rq("model=ltr-v1 model=_OriginalRanking_ efi.words=\"it's model=dense\""),
         ["b", "a", "a"]),
        (rq("model=_OriginalRanking_ model=ltr-v1"), ["a", "b", "b"]),
        (rq("model=$one model=$other"), ["a", "b", "b"]),
        (rq("model=ltr-v1 model=_OriginalRanking_", "reRankDocs=1"), ["b", None, None]),
        (rq("model=ltr-v1 model=_OriginalRanking_", "reRankDocs='2'"), ["b", "a", None]),
        (rq("model=ltr-v1 model=_OriginalRanking_", "reRankDocs=$n"), ["b", "a", "a"]),
        ("", ["a", "b", "b"]),
    ],
    ids=range(10),
)  # fmt: skip
def test_the_rq_parameter_gives_the_models_and_the_interleaved_ranks(
    query: str, expected: list[str | None]
) -> None:
    assert teams(rq=query) == expected


def test_ranks_are_counted_from_the_first_page() -> None:
    assert teams(start=1, rq=rq("model=ltr-v1 model=_OriginalRanking_", "reRankDocs=3")) == [
        "b", "a", None,
    ]  # fmt: skip
    assert verdict(SOLR, text(RESPONSE, start=2)) == "ignored: response without labels"


def test_models_may_be_in_a_field_of_their_own() -> None:
    event = only(SOLR(text(RESPONSE, models=["_OriginalRanking_", "ltr-v1"], rq=...)))
    assert (event.a, event.b, event.teams) == ("bm25", "ltr-v1", ["a", "b", "b"])
    fewer = only(solr(rerank_docs=1)(text(RESPONSE, models=["_OriginalRanking_", "ltr-v1"], rq="")))
    assert fewer.teams == ["a", None, None]


def test_a_single_model_is_a_duel_without_winner() -> None:
    for said in ({"models": ["ltr-v1"]}, {"models": ["ltr-v1"] * 2}, {"rq": rq("model=ltr-v1")}):
        assert SOLR(text(RESPONSE, **said)) == [Duel("q-1", "search", "ltr-v1", "ltr-v1", None, TS)]


def test_labels_alone_are_a_pair_sorted_by_name() -> None:
    for docs, sides in ((DOCS, ["a", "b", "b"]), (DOCS[::-1], ["b", "b", "a"])):
        event = only(SOLR(text(RESPONSE, docs=docs, rq=...)))
        assert (event.a, event.b, event.teams) == ("bm25", "ltr-v1", sides)


def test_the_opponent_of_a_single_label_must_be_known() -> None:
    one = text(RESPONSE, docs=[DOCS[1], DOCS[2]], rq=...)
    assert verdict(SOLR, one) == "ignored: list of one side"
    event = only(solr(pair=["bm25", "ltr-v1"])(one))
    assert (event.a, event.b, event.teams) == ("bm25", "ltr-v1", ["b", "b"])


def test_fields_may_have_other_names() -> None:
    translate = solr(experiment="ads", fields={"doc": "sku", "label": "pick", "query": "qid"})
    docs = [{"sku": 7, "pick": "x"}, {"sku": 8, "pick": "y"}]
    event = only(translate(text(RESPONSE, qid=3, docs=docs, rq=...)))
    assert (event.id, event.experiment, event.docs, event.a) == ("3", "ads", ["7", "8"], "x")


def test_a_click_is_by_document_or_by_rank() -> None:
    time = TS + 5000
    assert SOLR(text(SOLR_CLICK)) == [
        Click(f'["click","q-1","click",{time},"d2",null]', "search", "q-1", doc="d2", ts=time)
    ]
    ranked = only(SOLR(text(SOLR_CLICK, doc=..., rank=0)))
    assert (ranked.rank, ranked.doc) == (0, None)
    both = only(SOLR(text(SOLR_CLICK, rank=0)))
    assert (both.rank, both.doc) == (None, "d2")
    assert only(SOLR(text(SOLR_CLICK, id="e-1"))).id == '["event","e-1"]'


def test_only_the_configured_actions_are_clicks() -> None:
    translate = solr(clicks={"add": "cart"})
    assert only(translate(text(SOLR_CLICK, action="add"))).action == "cart"
    assert verdict(translate, text(SOLR_CLICK)) == "ignored: click"


def test_every_format_allows_control_records() -> None:
    pause = {"type": "control", "id": "c-1", "experiment": "search", "action": "pause"}
    assert SOLR(text(pause)) == [Control("c-1", "search", "pause")]
    (applied,) = SOLR(text(pause, action="apply", settings={"slate": 2}))
    assert isinstance(applied, Control)
    assert {name: bytes(it) for name, it in (applied.settings or {}).items()} == {"slate": b"2"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (changed(RESPONSE, docs=[]), "response without documents"),
        (changed(RESPONSE, docs=...), "response without documents"),
        (changed(RESPONSE, docs=None), "response without documents"),
        (changed(RESPONSE, docs=..., models=["ltr-v1"]), "response without documents"),
        (changed(RESPONSE, docs=[{"id": "d1"}, {"id": "d2"}]), "response without labels"),
        (changed(RESPONSE, experiment=None), "no experiment"),
        (changed(SOLR_CLICK, experiment=...), "no experiment"),
        (changed(SOLR_CLICK, action="hover"), "hover"),
        ({"type": "suggestion"}, "suggestion"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_records_without_a_duel_are_ignored(record: dict[str, Any], reason: str) -> None:
    assert verdict(SOLR, text(record)) == f"ignored: {reason}"


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"docs": []}, "type must be 'response' or 'click' (found null)."),
        (changed(RESPONSE, query_id=...), "query_id must be a string or an integer (found null)."),
        (changed(RESPONSE, docs="d1"), "docs must be an array of documents (found 'd1')."),
        (changed(RESPONSE, docs=["d1"]), "docs[0] must be a document, a JSON object (found"
         " 'd1')."),
        (changed(RESPONSE, docs=[DOCS[0], {}]), "docs[1].id must be a document's id, a string of 1"
         " to 1024 characters or an integer (found null)."),
        (changed(RESPONSE, docs=[{"id": "d1", "[interleaving]": 5}]), "docs[0].[interleaving] must"
         " be an arm's name, a string of 1 to 256 characters (found 5)."),
        (changed(RESPONSE, docs=[{"id": "d1", "[interleaving]": "dense"}]), "[interleaving] must be"
         " 'ltr-v1' or 'bm25' (found 'dense')."),
        (changed(RESPONSE, models=["x", "y", "z"]), "models must be an array of one model or two"
         " (found an array of 3)."),
        (changed(RESPONSE, rq=5), "rq must be a string, as Solr takes it (found 5)."),
        (changed(RESPONSE, rq=rq("model=x model=y model=z")), "the models of rq must be an array of"
         " one model or two (found an array of 3)."),
        (changed(RESPONSE, start=-1), "start must be an integer from 0 (found -1)."),
        (changed(SOLR_CLICK, doc=...), "a click must name a 'doc' or a 'rank' (found none)."),
        (changed(SOLR_CLICK, rank="first"), "rank must be an integer from 0 (found 'first')."),
        (changed(SOLR_CLICK, action=["click"]), "action must be a string of 1 to 256 characters"
         " (found an array of 1)."),
    ],
    ids=range(14),
)  # fmt: skip
def test_invalid_records_are_rejected(record: dict[str, Any], sentence: str) -> None:
    assert verdict(SOLR, text(record)) == f"invalid_record: {sentence}"
