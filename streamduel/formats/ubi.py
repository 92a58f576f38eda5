"""User Behavior Insights (UBI), the search and event logs of OpenSearch and others.

Source: the JSON Schemas of UBI 1.0.0 to 1.3.0 (Open Source Connections and OpenSearch).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import override

from streamduel.formats import reading
from streamduel.formats.base import (
    ActionName,
    FormatSettings,
    Ignored,
    Label,
    Paths,
    pair_in,
    side,
)
from streamduel.formats.reading import Found, Origin, look_up
from streamduel.records import MAX_DOC, Click, Duel, Impression, InputEvent, Rejected, Side
from streamduel.section import Integer, Section

BULK_ACTIONS: Final = frozenset({"index", "create", "delete", "update"})
"""Lines before each document in files for OpenSearch's bulk interface."""

BOTH_SIDES: Final[tuple[Side, Side]] = ("a", "b")
"""The teams of an impression whose ranks are unknown: rank 0 represents all documents of side a,
rank 1 those of side b."""


class UbiFields(Section):
    """Fields of UBI records: paths, of which the first that exists counts."""

    experiment: Paths = Field(
        ["query_attributes.experiment", "event_attributes.experiment"],
        description="The experiment's name.",
    )
    query: Paths = Field(["query_id"], description="The query's id, in queries and events.")
    docs: Paths = Field(
        # The other two names are those up to 1.2.
        ["query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids"],
        description="In a query, the documents shown, in order of rank.",
    )
    a: Paths = Field(
        ["query_attributes.a", "event_attributes.a"], description="One arm of the list."
    )
    b: Paths = Field(
        ["query_attributes.b", "event_attributes.b"], description="The other arm of the list."
    )
    teams: Paths = Field(
        ["query_attributes.teams"],
        description="In a query, the arm of each document: a list by rank, or a mapping from"
        " documents to arms.",
    )
    epoch: Paths = Field(
        ["query_attributes.epoch", "event_attributes.epoch"],
        description="The epoch of the assignment with the pair.",
    )
    team: Paths = Field(
        # As OpenSearch's demonstration shop, data generator and workbench write it.
        [
            "event_attributes.search_config",
            "event_attributes.object.search_config",
            "event_attributes.object.search_configuration_uuid",
        ],
        description="In an event, the arm of its document.",
    )
    doc: Paths = Field(
        ["event_attributes.object.object_id", "event_attributes.data.object_id"],
        description="In an event, the document's id, as in `docs`.",
    )
    ordinal: Paths = Field(
        # Up to 1.1 the ordinal was an object.
        ["event_attributes.position.ordinal.index", "event_attributes.position.ordinal"],
        description="In an event, the document's position in the list.",
    )
    id: Paths | None = Field(
        None,
        description="An event's own id. null: the document's id in an export, or composed of the"
        " event's fields.",
    )


class UbiSettings(FormatSettings):
    """User Behavior Insights (UBI): queries and events."""

    name: Literal["ubi"] = "ubi"
    sides: Literal["query", "events"] = Field(
        "query",
        description="Which records name the arms of the documents: the query for each rank, or each"
        " event for its own document.",
    )
    applications: list[Label] | None = Field(
        None, description="Records of other applications are ignored; null: no record is."
    )
    clicks: dict[Label, ActionName] = Field(
        {"click": "click", "click_through": "click", "item_click": "click"},
        description="The `action_name`s that are clicks, each with the action of its click.",
    )
    shown: list[Label] = Field(
        ["impression"],
        description="With `sides: events`, the `action_name`s of documents that were shown.",
    )
    clicks_by: Literal["doc", "rank"] = Field(
        "doc",
        description="With `doc`, a click is joined by its document, or by its ordinal if it names"
        " no document; with `rank`, by its ordinal alone.",
    )
    first_ordinal: Annotated[Integer, Field(ge=0, le=1)] = Field(
        1, description="The ordinal of the first document."
    )
    fields: UbiFields = UbiFields()

    @property
    @override
    def tells_ranks(self) -> bool:
        return self.sides == "query"

    @property
    @override
    def most_events(self) -> int:
        return 2 if self.sides == "events" else 1  # an impression and its click

    @override
    def translate(self, value: bytes) -> list[InputEvent]:
        """Translate queries and events, in any order in one click log.

        With `sides: query`, a query that names the arm of each document is an impression, and an
        event with one of the actions in `clicks` is a click on it. With `sides: events`, an event
        that names the arm of its document is an impression of two ranks, one for each side, and,
        for an action in `clicks`, also a click on one of them. The impression has the query's id,
        so later ones are duplicates, and the fold joins all clicks of a query. Only the number of
        clicks per side is known in this case, as `click_count` needs it.

        >>> translate = UbiSettings(experiment="search").translate
        >>> translate(b'{"action_name": "click", "query_id": "q-1", "client_id": "c-1",'
        ...           b' "event_attributes": {"object": {"object_id": "d3"}}}')
        [Click(id='["click","q-1","c-1","click",null,"d3",null]', experiment='search',
               impression='q-1', doc='d3', client='c-1')]
        """
        record = reading.read_object(value)
        if record.get("type") == "control":
            return [reading.control(value, record)]
        bulk = len(record) == 1 and BULK_ACTIONS.issuperset(record)
        if bulk and all(isinstance(target, dict) for target in record.values()):
            raise Ignored("bulk action")
        exported = Found("_id", None)
        if isinstance(record.get("_source"), dict):  # a search result or an export
            exported, record = look_up(record, ["_id"]), record["_source"]
        wanted = self.applications
        if wanted is not None and record.get("application") not in wanted:
            raise Ignored("another application")
        if look_up(record, ["action_name"]).value is not None:
            return self._event(record, exported)
        return self._query(record)

    def _query(self, record: dict[str, Any]) -> list[InputEvent]:
        fields = self.fields
        query = look_up(record, fields.query)
        if query.value is None and "user_query" not in record:
            raise Rejected(
                "invalid_record",
                "the record must have an 'action_name', as events have, or a "
                f"'{query.where}' or a 'user_query', as queries have.",
            )
        if self.sides == "events":
            raise Ignored("query")
        if query.value is None:
            raise Ignored("query without id")
        experiment = self.experiment_of(record, self.fields.experiment)
        docs = self._docs(record)
        if docs == []:
            raise Ignored("query without results")
        pair = self._pair(record)
        id_, ts, origin = reading.identifier(query), self._time(record), _origin(record)
        if pair is not None and pair[0] == pair[1]:
            return [Duel(id_, experiment, *pair, winner=None, ts=ts, **origin)]
        picked = look_up(record, fields.teams)
        if picked.value is None:
            raise Ignored("query without teams")
        by_rank = self.arms_by_rank(picked, docs)
        pair = pair or pair_in(by_rank)
        sides = {label: side(label, pair, picked.where) for label in dict.fromkeys(by_rank)}
        teams = [sides[label] for label in by_rank]
        docs = docs if self.clicks_by == "doc" else None
        epoch = self._epoch(record)
        return [
            Impression(id_, experiment, *pair, teams=teams, docs=docs, epoch=epoch, ts=ts, **origin)
        ]

    def _event(self, record: dict[str, Any], exported: Found) -> list[InputEvent]:
        action = reading.name(Found("action_name", record["action_name"]))
        by_event = self.sides == "events"
        if action not in self.clicks and not (by_event and action in self.shown):
            raise Ignored(action)
        if look_up(record, self.fields.query).value is None:
            raise Ignored(f"{action} without query")
        return (self._credited if by_event else self._click)(record, action, exported)

    def _click(self, record: dict[str, Any], action: str, exported: Found) -> list[InputEvent]:
        """A click on a document of the list in its query."""
        fields = self.fields
        experiment = self.experiment_of(record, self.fields.experiment)
        found, ordinal = look_up(record, fields.doc), look_up(record, fields.ordinal)
        doc = rank = None
        if self.clicks_by == "doc" and found.value is not None:
            doc = reading.document(found)
        elif ordinal.value is None:
            either = f"{found.where} or {ordinal.where}"
            place = either if self.clicks_by == "doc" else ordinal.where
            raise Rejected("invalid_record", f"a click must name its place in {place}.")
        else:
            first = self.first_ordinal
            rank = reading.integer(ordinal, first) - first
        query, ts = reading.identifier(look_up(record, fields.query)), self._time(record)
        id_ = self._event_id(record, exported, query, ts)
        action = self.clicks[action]
        return [Click(id_, experiment, query, rank, doc, action, ts, **_origin(record))]

    def _credited(self, record: dict[str, Any], action: str, exported: Found) -> list[InputEvent]:
        """The impression of an event that names the arm of its document, and its click."""
        fields = self.fields
        experiment = self.experiment_of(record, self.fields.experiment)
        found = look_up(record, fields.team)
        if found.value is None:
            raise Ignored(f"{action} without side")
        pair = self._pair(record)
        if pair is None:
            a, b = look_up(record, fields.a).where, look_up(record, fields.b).where
            raise Rejected(
                "invalid_record",
                f"the event names no arms in {a} and {b}, and no pair is configured.",
            )
        team = side(self.arm(found), pair, found.where)
        query, ts = reading.identifier(look_up(record, fields.query)), self._time(record)
        origin = _origin(record)
        if pair[0] == pair[1]:
            return [Duel(query, experiment, *pair, winner=None, ts=ts, **origin)]
        teams: list[Side | None] = [*BOTH_SIDES]
        epoch = self._epoch(record)
        events: list[InputEvent] = [
            Impression(query, experiment, *pair, teams=teams, epoch=epoch, ts=ts, **origin)
        ]
        if action in self.clicks:
            id_, rank = self._event_id(record, exported, query, ts), int(team == "b")
            action = self.clicks[action]
            events.append(Click(id_, experiment, query, rank, None, action, ts, **origin))
        return events

    def _pair(self, record: dict[str, Any]) -> tuple[str, str] | None:
        a, b = look_up(record, self.fields.a), look_up(record, self.fields.b)
        if a.value is None and b.value is None:
            return self.configured_pair()
        return self.arm(a), self.arm(b)

    def _docs(self, record: dict[str, Any]) -> list[str] | None:
        found = look_up(record, self.fields.docs)
        if found.value is None:
            return None
        texts = self.texts(found, MAX_DOC)
        if texts is not None:
            return texts
        return [
            reading.document(entry) for entry in self.entries(found, "an array of documents' ids")
        ]

    def _epoch(self, record: dict[str, Any]) -> int | None:
        found = look_up(record, self.fields.epoch)
        return None if found.value is None else reading.integer(found, 1)

    def _time(self, record: dict[str, Any]) -> int | None:
        return reading.milliseconds(look_up(record, ["timestamp"]))

    def _event_id(self, record: dict[str, Any], exported: Found, query: str, ts: int | None) -> str:
        """An event's own id, or one composed of its fields; never equal to an impression's id."""
        own = look_up(record, self.fields.id or [])
        if own.value is None:
            own = exported
        if own.value is not None:
            return reading.compose("event", reading.identifier(own))
        client, action = record.get("client_id"), record["action_name"]
        doc, ordinal = look_up(record, self.fields.doc), look_up(record, self.fields.ordinal)
        return reading.compose("click", query, client, action, ts, doc.value, ordinal.value)


def _origin(record: dict[str, Any]) -> Origin:
    """Where a record comes from; an event names no query."""
    return reading.origin(record, ["client_id"], ["user_query"])
