"""The configuration model: every section and key of the YAML file."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from streamduel import formats
from streamduel.config.experiment import ExperimentSettings, Integer, Name, Section
from streamduel.connector import Connector
from streamduel.records import MAX_TIME


class DedupeSettings(Section):
    """The dedupe window: how long record ids are remembered to recognise duplicates."""

    window_records: Integer = Field(
        1_000_000,
        ge=1,
        le=10**9,
        description="Valid records per partition; 1 million take about 110 MB.",
    )
    window_ms: Integer = Field(
        3_600_000, ge=0, le=MAX_TIME, description="Stream time, in milliseconds."
    )


class LimitSettings(Section):
    """Limits on input records."""

    max_record_bytes: Integer = Field(
        2**20,
        ge=1,
        le=2**24,
        description="A larger record becomes a dead letter; the default is Kafka's own limit.",
    )


class CommitSettings(Section):
    """How often results become visible; docs/delivery.md has the cost."""

    interval_ms: Integer = Field(
        500,
        ge=1,
        le=60_000,
        description="Longest time from reading a record to its commit; shorter intervals lower the"
        " latency and the throughput.",
    )
    max_outputs: Integer = Field(
        10_000,
        ge=1,
        le=10**9,
        description="Outputs that trigger an earlier commit; bounds memory.",
    )


class MonitoringSettings(Section):
    """The HTTP server of metrics, health checks and the status page."""

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1", description="The address to listen on; 0.0.0.0 for all interfaces."
    )
    port: Integer = Field(
        9400,
        ge=0,
        le=65535,
        description="Port of /metrics, /healthz, /readyz and /api/experiments; 0 takes a free one.",
    )


class Config(Section):
    """The whole configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: dict[str, Any] = Field(description="Where the click log is read.")
    sink: dict[str, Any] = Field(description="Where assignments and dead letters are written.")
    snapshots: dict[str, Any] = Field(description="Where snapshots are stored.")
    dedupe: DedupeSettings = DedupeSettings()
    limits: LimitSettings = LimitSettings()
    commit: CommitSettings = CommitSettings()
    monitoring: MonitoringSettings | None = MonitoringSettings()
    experiments: Annotated[dict[Name, ExperimentSettings], Field(min_length=1)] = Field(
        description="Each experiment by its name, which its records carry."
    )

    @property
    def log_format(self) -> formats.FormatSettings | None:
        """Settings of the click log's format; None for streamduel's own records."""
        section = self.source.get("format")
        if section is None:
            return None
        section = {"name": section} if isinstance(section, str) else section
        return formats.FORMATS[section["name"]].model_validate(section)


SECTIONS: Final = ("source", "sink", "snapshots")
"""Sections that a connector checks with a model of its own."""


def settings_model(section: str, connector: Connector) -> type[BaseModel]:
    """The model with which a connector checks one of the `SECTIONS`."""
    if section == "source":
        return connector.source_settings
    return connector.sink_settings if section == "sink" else connector.snapshot_settings
