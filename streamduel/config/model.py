"""The configuration model: every section and key of the YAML file."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from streamduel.config.experiment import ExperimentSettings, Integer, Name, Section
from streamduel.connector import Connector
from streamduel.formats import FORMATS, Settings
from streamduel.records import MAX_TIME


class DedupeSettings(Section):
    """How long a record's id is remembered, so that its second delivery is not counted."""

    window_records: Annotated[Integer, Field(ge=1, le=10**9)] = Field(
        1_000_000, description="Valid records per partition; 1 million take about 110 MB."
    )
    window_ms: Annotated[Integer, Field(ge=0, le=MAX_TIME)] = Field(
        3_600_000, description="Stream time, in milliseconds."
    )


class LimitSettings(Section):
    """Bounds on what comes from outside."""

    max_record_bytes: Annotated[Integer, Field(ge=1, le=2**24)] = Field(
        2**20, description="A larger record is a dead letter; Kafka's own default limit."
    )


class CommitSettings(Section):
    """How often work becomes visible; see docs/delivery.md for what it costs."""

    interval_ms: Annotated[Integer, Field(ge=1, le=60_000)] = Field(
        500, description="At most this long after a record is read; less is faster and dearer."
    )
    max_outputs: Annotated[Integer, Field(ge=1, le=10**9)] = Field(
        10_000, description="Commit earlier when this many outputs wait: bounds memory."
    )


class MonitoringSettings(Section):
    """Where metrics and health are served."""

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1", description="The address to listen on; 0.0.0.0 for everyone."
    )
    port: Annotated[Integer, Field(ge=0, le=65535)] = Field(
        9400, description="Of /metrics, /healthz, /readyz and /api/experiments; 0 takes a free one."
    )


class Config(Section):
    """The whole configuration: where records come from, where results go, which rankers compete."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: dict[str, Any] = Field(description="Where the click log comes from.")
    sink: dict[str, Any] = Field(description="Where assignments and dead letters go.")
    snapshots: dict[str, Any] = Field(description="Where the state is kept.")
    dedupe: DedupeSettings = DedupeSettings()
    limits: LimitSettings = LimitSettings()
    commit: CommitSettings = CommitSettings()
    monitoring: MonitoringSettings | None = MonitoringSettings()
    experiments: Annotated[dict[Name, ExperimentSettings], Field(min_length=1)] = Field(
        description="Each experiment under its name, which its records bear."
    )

    @property
    def log_format(self) -> Settings | None:
        """Settings of the click log's format; None for streamduel's own records."""
        section = self.source.get("format")
        if section is None:
            return None
        section = {"name": section} if isinstance(section, str) else section
        return FORMATS[section["name"]].model_validate(section)


SECTIONS: Final = ("source", "sink", "snapshots")
"""Sections that a connector checks with a model of its own."""


def settings_model(section: str, connector: Connector) -> type[BaseModel]:
    """The model with which a connector checks one of the `SECTIONS`."""
    models = {
        "source": connector.source_settings,
        "sink": connector.sink_settings,
        "snapshots": connector.snapshot_settings,
    }
    return models[section]
