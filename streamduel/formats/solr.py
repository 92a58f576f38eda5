"""Responses of Apache Solr's learning to rank, with the model that picked each document.

Source: the Solr Reference Guide, "Learning To Rank", since Solr 8.8.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import override

from streamduel.formats import reading
from streamduel.formats.base import (
    ActionName,
    FormatSettings,
    Ignored,
    Label,
    Path,
    Paths,
    pair_in,
    side,
)
from streamduel.formats.reading import Found, Origin, look_up
from streamduel.records import MAX_TIME, Click, Duel, Impression, InputEvent, Rejected
from streamduel.section import Integer, Section

_PARAMETER: Final = re.compile(
    r"""(?<![\w.])([\w.]+)=(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s}]*))""", re.DOTALL
)
"""A local parameter of Solr; its value may be quoted, because other parameters hold user text."""

MAX_RQ: Final = 8192
"""Characters of the `rq` parameter, as many as Solr takes of a whole request in a URL."""

_DIGITS: Final = re.compile(r"[0-9]{1,15}")
"""A number of documents."""


class SolrFields(Section):
    """Fields of a Solr service's records: paths, of which the first that exists counts."""

    experiment: Paths = Field(["experiment"], description="The experiment's name.")
    query: Paths = Field(["query_id"], description="The query's id, in responses and clicks.")
    docs: Paths = Field(
        ["docs", "response.docs"], description="The documents of a response, as Solr returns them."
    )
    models: Paths = Field(["models"], description="The requested models, one or two.")
    rq: Paths = Field(
        ["rq", "responseHeader.params.rq"],
        description="The `rq` parameter, which also names the models.",
    )
    start: Paths = Field(["start", "response.start"], description="The first document's rank.")
    doc: Path = Field("id", description="The unique key of a document.")
    label: Path = Field("[interleaving]", description="The model that picked a document.")


class SolrSettings(FormatSettings):
    """Apache Solr: responses whose learning to rank interleaves two models, and their clicks."""

    name: Literal["solr"] = "solr"
    clicks: dict[Label, ActionName] = Field(
        {"click": "click"},
        description="The actions that are clicks, each with the action of its click.",
    )
    rerank_docs: Annotated[Integer, Field(ge=1, le=MAX_TIME)] = Field(
        200,  # Solr's default
        description="Number of interleaved documents if `rq` does not give it; later documents"
        " belong to no side.",
    )
    fields: SolrFields = SolrFields()

    @override
    def translate(self, value: bytes) -> list[InputEvent]:
        """Translate the responses of Solr and the clicks that a search service logs.

        A `response` is an impression. It has the documents as Solr returned them to a request with
        `fl=id,[interleaving]`. A `click` names the query and the document, or its rank.

        >>> translate = SolrSettings(experiment="search").translate
        >>> translate(b'{"type": "response", "query_id": "q-1", "docs": ['
        ...           b'{"id": "d3", "[interleaving]": "ltr"},'
        ...           b'{"id": "d1", "[interleaving]": "_OriginalRanking_"}]}')
        [Impression(id='q-1', experiment='search', a='_OriginalRanking_', b='ltr', teams=['b', 'a'],
                    docs=['d3', 'd1'])]
        """
        record = reading.read_object(value)
        kind = reading.name(Found("type", record.get("type")), "'response' or 'click'")
        if kind == "control":
            return [reading.control(value, record)]
        if kind == "response":
            return self._response(record)
        if kind == "click":
            return self._click(record)
        raise Ignored(kind)

    def _response(self, record: dict[str, Any]) -> list[InputEvent]:
        experiment, query = self.experiment_of(record, self.fields.experiment), self._query(record)
        ts, documents = self._time(record), self._documents(record)
        if not documents:
            raise Ignored("response without documents")
        pair = self._pair(record)
        if pair is not None and pair[0] == pair[1]:
            return [Duel(query, experiment, *pair, winner=None, ts=ts, **_origin(record))]
        docs = [reading.document(_field(document, self.fields.doc)) for document in documents]
        picked = self._picked(record, documents)
        if not any(picked):
            raise Ignored("response without labels")
        pair = pair or pair_in(picked)
        teams = [side(label, pair, self.fields.label) for label in picked]
        return [
            Impression(query, experiment, *pair, teams=teams, docs=docs, ts=ts, **_origin(record))
        ]

    def _click(self, record: dict[str, Any]) -> list[InputEvent]:
        named = look_up(record, ["action"])
        action = "click" if named.value is None else reading.name(named)
        if action not in self.clicks:
            raise Ignored(action)
        experiment, query, ts = (
            self.experiment_of(record, self.fields.experiment),
            self._query(record),
            self._time(record),
        )
        at, ranked = look_up(record, ["doc"]), look_up(record, ["rank"])
        if at.value is None and ranked.value is None:
            raise Rejected("invalid_record", "a click must name a 'doc' or a 'rank' (found none).")
        doc = None if at.value is None else reading.document(at)
        rank = None if ranked.value is None else reading.integer(ranked, 0)
        own = look_up(record, ["id"])
        if own.value is None:
            id_ = reading.compose("click", query, action, ts, doc, rank)
        else:
            id_ = reading.compose("event", reading.identifier(own))
        # The fold would prefer the rank, which a page may count differently.
        rank = rank if doc is None else None
        action = self.clicks[action]
        return [Click(id_, experiment, query, rank, doc, action, ts, **_origin(record))]

    def _query(self, record: dict[str, Any]) -> str:
        return reading.identifier(look_up(record, self.fields.query))

    def _time(self, record: dict[str, Any]) -> int | None:
        return reading.milliseconds(look_up(record, ["ts", "timestamp"]))

    def _documents(self, record: dict[str, Any]) -> list[Found]:
        found = look_up(record, self.fields.docs)
        if found.value is None:  # as in Solr's answer to a request that failed
            return []
        documents = self.entries(found, "an array of documents")
        for document in documents:
            if not isinstance(document.value, dict):
                raise document.misfit("a document, a JSON object")
        return documents

    def _picked(self, record: dict[str, Any], documents: list[Found]) -> list[str | None]:
        """Per rank, the arm that picked the document.

        Solr labels the documents that it did not interleave with the first model.
        """
        given = [value for value in self._local(record, "reRankDocs") if _DIGITS.fullmatch(value)]
        interleaved = int(given[0]) if given else self.rerank_docs
        start = look_up(record, self.fields.start)
        first = 0 if start.value is None else reading.integer(start, 0)
        picked: list[str | None] = [None] * len(documents)
        for rank, document in enumerate(documents[: max(0, interleaved - first)]):
            label = _field(document, self.fields.label)
            if label.value is not None:
                picked[rank] = self.arm(label)
        return picked

    def _pair(self, record: dict[str, Any]) -> tuple[str, str] | None:
        """The requested models; a single one is on both sides."""
        found = look_up(record, self.fields.models)
        if found.value is None:
            models = self._local(record, "model")
            if not models or any(model.startswith("$") for model in models):  # a reference
                return self.configured_pair()
            found = Found("the models of rq", models)
        if not isinstance(found.value, list) or not 1 <= len(found.value) <= 2:
            raise found.misfit("an array of one model or two")
        arms = [self.arm(Found(found.where, model)) for model in found.value]
        return arms[0], arms[-1]

    def _local(self, record: dict[str, Any], parameter: str) -> list[str]:
        """The values of a local parameter of `rq`."""
        found = look_up(record, self.fields.rq)
        if found.value is None:
            return []
        if not isinstance(found.value, str):
            raise found.misfit("a string, as Solr takes it")
        if len(found.value) > MAX_RQ:
            raise found.misfit(f"a string of at most {MAX_RQ} characters")
        return [
            "".join(value) for key, *value in _PARAMETER.findall(found.value) if key == parameter
        ]


def _field(document: Found, field: str) -> Found:
    return Found(f"{document.where}.{field}", look_up(document.value, [field]).value)


def _origin(record: dict[str, Any]) -> Origin:
    """Where a record comes from: fields that the service may add, and Solr's own `q`."""
    return reading.origin(record, ["client"], ["q", "responseHeader.params.q"])
