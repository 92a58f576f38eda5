"""What a configuration may say about the format of a click log."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator

from streamduel.config.experiment import Integer, Name, Section
from streamduel.records import MAX_TIME


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Path = Annotated[str, StringConstraints(pattern=r"^[^.]+(\.[^.]+)*$", max_length=256)]
Paths = Annotated[
    list[Path],
    BeforeValidator(_listed, json_schema_input_type=list[Path] | Path),
    Field(min_length=1),
]
Label = Annotated[str, StringConstraints(min_length=1, max_length=256)]
ActionName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class FormatSettings(Section):
    """What every foreign format needs to be told."""

    experiment: Name | None = Field(
        None,
        description="The experiment that all of the log belongs to; if null, each record names its"
        " own, and those that name none are ignored.",
    )
    pair: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = Field(
        None, description="The two arms of each list that does not name its own."
    )
    arms: dict[Label, Name] = Field(
        {}, description="Arms by what the log calls them, where that is not their name."
    )

    @field_validator("pair")
    @classmethod
    def _two(cls, pair: list[str] | None) -> list[str] | None:
        if pair and pair[0] == pair[1]:
            raise ValueError(f"must be two arms (found '{pair[0]}' twice)")
        return pair


class UbiFields(Section):
    """Where a UBI record has what: paths, of which the first that is there counts."""

    experiment: Paths = Field(
        ["query_attributes.experiment", "event_attributes.experiment"],
        description="The experiment's name.",
    )
    query: Paths = Field(["query_id"], description="The query's id, in queries and events.")
    docs: Paths = Field(
        # Up to 1.2 it had two other names.
        ["query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids"],
        description="In a query, the documents shown, in their order.",
    )
    a: Paths = Field(
        ["query_attributes.a", "event_attributes.a"], description="An arm of the list."
    )
    b: Paths = Field(["query_attributes.b", "event_attributes.b"], description="The other one.")
    teams: Paths = Field(
        ["query_attributes.teams"],
        description="In a query, the arm whose document it is: a list with one for each rank, or a"
        " mapping from documents to arms.",
    )
    epoch: Paths = Field(
        ["query_attributes.epoch", "event_attributes.epoch"],
        description="The epoch of the assignment that asked for the pair.",
    )
    team: Paths = Field(
        # Where OpenSearch's demonstration shop, its data generator and its workbench write it.
        [
            "event_attributes.search_config",
            "event_attributes.object.search_config",
            "event_attributes.object.search_configuration_uuid",
        ],
        description="In an event, the arm whose document it is about.",
    )
    doc: Paths = Field(
        ["event_attributes.object.object_id", "event_attributes.data.object_id"],
        description="In an event, the document's id, as in `docs`.",
    )
    ordinal: Paths = Field(
        # Up to 1.1 the ordinal was an object.
        ["event_attributes.position.ordinal.index", "event_attributes.position.ordinal"],
        description="In an event, the document's place in the list.",
    )
    id: Paths | None = Field(
        None,
        description="An event's own id, if it has one. Otherwise it is the document's id in an"
        " export, or composed of what the event says.",
    )


class UbiSettings(FormatSettings):
    """User Behavior Insights: queries and events, in one log or in two."""

    name: Literal["ubi"] = "ubi"
    sides: Literal["query", "events"] = Field(
        "query",
        description="Which records name the arms of the documents: the query, for each rank, or"
        " each event, for its own document.",
    )
    applications: list[Label] | None = Field(
        None, description="Records of other applications are ignored; if null, of none."
    )
    clicks: dict[Label, ActionName] = Field(
        {"click": "click", "click_through": "click", "item_click": "click"},
        description="The `action_name`s that are clicks, and the action that each counts as.",
    )
    shown: list[Label] = Field(
        ["impression"],
        description="With `sides: events`, the `action_name`s that say that a document was shown.",
    )
    clicks_by: Literal["doc", "rank"] = Field(
        "doc",
        description="Whether a click is looked up by its document, and by its ordinal if it names"
        " none, or by its ordinal alone.",
    )
    first_ordinal: Annotated[Integer, Field(ge=0, le=1)] = Field(
        1, description="The ordinal of the first document."
    )
    fields: UbiFields = UbiFields()


class SolrFields(Section):
    """Where a record of a Solr service has what: paths, of which the first that is there counts."""

    experiment: Paths = Field(["experiment"], description="The experiment's name.")
    query: Paths = Field(["query_id"], description="The query's id, in responses and clicks.")
    docs: Paths = Field(
        ["docs", "response.docs"], description="The documents of a response, as Solr has them."
    )
    models: Paths = Field(["models"], description="The models asked for, one or two.")
    rq: Paths = Field(
        ["rq", "responseHeader.params.rq"],
        description="The `rq` parameter, which names the models, too.",
    )
    start: Paths = Field(["start", "response.start"], description="The first document's rank.")
    doc: Path = Field("id", description="In a document, its unique key.")
    label: Path = Field("[interleaving]", description="In a document, the model that picked it.")


class SolrSettings(FormatSettings):
    """Responses of Apache Solr whose learning to rank interleaves two models, and their clicks."""

    name: Literal["solr"] = "solr"
    clicks: dict[Label, ActionName] = Field(
        {"click": "click"},
        description="The actions that are clicks, and the action that each counts as.",
    )
    rerank_docs: Annotated[Integer, Field(ge=1, le=MAX_TIME)] = Field(
        200,  # Solr's own default
        description="How many documents are interleaved, if `rq` does not say it; those after them"
        " are of no side.",
    )
    fields: SolrFields = SolrFields()


Settings = UbiSettings | SolrSettings

FORMATS: Final[Mapping[str, type[Settings]]] = MappingProxyType(
    {"ubi": UbiSettings, "solr": SolrSettings}
)
"""The settings of each format other than streamduel's own records, by its name."""
