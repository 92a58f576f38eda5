"""Responses of Apache Solr's learning to rank, with the model that picked each document.

Source: the Solr Reference Guide, "Learning To Rank", since Solr 8.8.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from streamduel.formats import names, reading
from streamduel.formats.names import Pair, arm, configured_pair, pair_in, side
from streamduel.formats.reading import Found, look_up
from streamduel.formats.settings import SolrSettings
from streamduel.formats.translator import Ignored
from streamduel.records import Click, Duel, Impression, InputEvent, Rejected

_PARAMETER: Final = re.compile(
    r"""(?<![\w.])([\w.]+)=(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s}]*))""", re.DOTALL
)
"""A local parameter of Solr, its value in quotes or not: users' words may stand in others."""

_DIGITS: Final = re.compile(r"[0-9]{1,15}")
"""Of a number of documents; longer ones are none."""


class Document(NamedTuple):
    """A document of a response.

    Attributes:
        where: it stands in the record.
        fields: as Solr sent them.
    """

    where: str
    fields: dict[str, Any]


class SolrTranslator:
    """Translates what a search service logs: each response of Solr, and each click.

    A `response` holds the documents as Solr sent them, asked with `fl=id,[interleaving]`; it is
    an impression. A `click` names the query and the document, or its rank.

    Args:
        settings: of the format.

    >>> translate = SolrTranslator(SolrSettings(experiment="search"))
    >>> translate(b'{"type": "response", "query_id": "q-1", "docs": ['
    ...           b'{"id": "d3", "[interleaving]": "ltr"},'
    ...           b'{"id": "d1", "[interleaving]": "_OriginalRanking_"}]}')
    [Impression(id='q-1', experiment='search', a='ltr', b='_OriginalRanking_', teams=['a', 'b'],
                docs=['d3', 'd1'], chances=None, epoch=None, ts=None)]
    """

    def __init__(self, settings: SolrSettings) -> None:
        self._settings = settings
        self._fields = settings.fields

    def __call__(self, value: bytes) -> list[InputEvent]:
        """The events of a record.

        Raises:
            Ignored: it says nothing about a duel.
            Rejected: it cannot be used.
        """
        record = reading.read_object(value)
        kind = reading.name(Found("type", record.get("type")), "'response' or 'click'")
        if kind == "control":
            return [reading.control(record)]
        if kind == "response":
            return self._response(record)
        if kind == "click":
            return self._click(record)
        raise Ignored(kind)

    def _response(self, record: dict[str, Any]) -> list[InputEvent]:
        experiment, query = self._experiment(record), self._query(record)
        ts, documents = self._time(record), self._documents(record)
        if not documents:
            raise Ignored("response without documents")
        pair = self._pair(record)
        if pair is not None and pair[0] == pair[1]:
            return [Duel(query, experiment, *pair, winner=None, ts=ts)]
        docs = [reading.document(self._of(document, self._fields.doc)) for document in documents]
        picked = self._picked(record, documents)
        if not any(picked):
            raise Ignored("response without labels")
        pair = pair or pair_in(picked)
        teams = [side(label, pair, self._fields.label) for label in picked]
        return [Impression(query, experiment, *pair, teams=teams, docs=docs, ts=ts)]

    def _click(self, record: dict[str, Any]) -> list[InputEvent]:
        named = look_up(record, ["action"])
        action = "click" if named.value is None else reading.name(named)
        if action not in self._settings.clicks:
            raise Ignored(action)
        experiment, query, ts = self._experiment(record), self._query(record), self._time(record)
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
        # The fold goes by the rank where there is one, but a page may number its places otherwise.
        rank = rank if doc is None else None
        return [Click(id_, experiment, query, rank, doc, self._settings.clicks[action], ts)]

    def _experiment(self, record: dict[str, Any]) -> str:
        return names.experiment(record, self._settings, self._fields.experiment)

    def _query(self, record: dict[str, Any]) -> str:
        return reading.identifier(look_up(record, self._fields.query))

    def _time(self, record: dict[str, Any]) -> int | None:
        return reading.milliseconds(look_up(record, ["ts", "timestamp"]))

    def _documents(self, record: dict[str, Any]) -> list[Document]:
        """The documents of a response, each with the place where it stands."""
        found = look_up(record, self._fields.docs)
        if not isinstance(found.value, list):
            raise found.misfit("an array of documents")
        documents = [
            Document(f"{found.where}[{rank}]", document)
            for rank, document in enumerate(found.value)
        ]
        for document in documents:
            if not isinstance(document.fields, dict):
                raise Found(*document).misfit("a document, a JSON object")
        return documents

    def _of(self, document: Document, field: str) -> Found:
        return Found(f"{document.where}.{field}", look_up(document.fields, [field]).value)

    def _picked(self, record: dict[str, Any], documents: list[Document]) -> list[str | None]:
        """Per rank, the arm that picked the document.

        Solr labels what lies beyond the documents that it interleaved with the first model.
        """
        said = [value for value in self._asked(record, "reRankDocs") if _DIGITS.fullmatch(value)]
        interleaved = int(said[0]) if said else self._settings.rerank_docs
        start = look_up(record, self._fields.start)
        first = 0 if start.value is None else reading.integer(start, 0)
        picked: list[str | None] = [None] * len(documents)
        for rank, document in enumerate(documents[: max(0, interleaved - first)]):
            label = self._of(document, self._fields.label)
            if label.value is not None:
                picked[rank] = arm(label, self._settings.arms)
        return picked

    def _pair(self, record: dict[str, Any]) -> Pair | None:
        """The models that were asked for; one that was asked for alone is on both sides."""
        found = look_up(record, self._fields.models)
        if found.value is None:
            asked = self._asked(record, "model")
            if not asked or any(model.startswith("$") for model in asked):  # in a parameter's name
                return configured_pair(self._settings)
            found = Found("the models of rq", asked)
        if not isinstance(found.value, list) or not 1 <= len(found.value) <= 2:
            raise found.misfit("an array of one model or two")
        arms = [arm(Found(found.where, model), self._settings.arms) for model in found.value]
        return arms[0], arms[-1]

    def _asked(self, record: dict[str, Any], parameter: str) -> list[str]:
        """The values of a local parameter of `rq`."""
        found = look_up(record, self._fields.rq)
        if found.value is None:
            return []
        if not isinstance(found.value, str):
            raise found.misfit("a string, as Solr takes it")
        return [
            "".join(value) for key, *value in _PARAMETER.findall(found.value) if key == parameter
        ]
