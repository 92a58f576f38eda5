"""The configuration model: every section and key of the YAML file."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from streamduel import formats
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import MAX_BATCH_BYTES, Connector
from streamduel.records import MAX_COUNT, MAX_TIME
from streamduel.section import FROM_FILE, Integer, Name, Section, TopicName


class DedupeSettings(Section):
    """The dedupe window: how long record ids are remembered to recognise duplicates."""

    window_records: Integer = Field(
        1_000_000,
        ge=1,
        le=10**9,
        description="Valid records per partition; 1 million take about 150 MB of resident memory.",
    )
    window_ms: Integer = Field(
        3_600_000, ge=0, le=MAX_TIME, description="Stream time, in milliseconds."
    )


ControlOrigin = Literal["log", "topic", "off"]
"""Where control records come from: the click log, the control topic, or nowhere."""


class TimeSettings(Section):
    """Stream time: how far a single record can move it; docs/delivery.md has the rule."""

    max_advance_ms: Integer = Field(
        300_000,
        ge=0,
        le=MAX_TIME,
        description="How far one record can move stream time ahead of the partition's last 31 valid"
        " records. A larger step counts only when most of these records agree with it.",
    )


class LimitSettings(Section):
    """Limits on input records."""

    control_records: Annotated[bool, Field(strict=True)] = Field(
        True,
        description="Whether control records take effect; with `false`, each becomes a dead letter"
        " and `streamduel control` is refused.",
    )

    max_record_bytes: Integer = Field(
        2**20,
        ge=1,
        le=2**24,
        description="A larger record becomes a dead letter; the default is Kafka's own limit.",
    )
    max_batch_bytes: Integer = Field(
        MAX_BATCH_BYTES,
        ge=2**16,
        le=2**30,
        description="Decompressed bytes of one batch of records. A batch with more becomes one dead"
        " letter, and is never decompressed further.",
    )
    max_ranks: Integer = Field(
        1000,
        ge=1,
        le=100_000,
        description="Entries of `teams`, `docs`, `chances` and `clicks`; a record with more becomes"
        " a dead letter.",
    )
    max_open_bytes: Integer = Field(
        # Some 600,000 impressions: a thousand a second for ten minutes. A third of what the
        # shipped manifests allow to the process.
        2**28,
        ge=2**12,
        le=2**36,
        description="Memory of the open impressions and pending clicks of one partition, of all its"
        " experiments together. With more, the oldest join windows close earlier.",
    )
    max_duels_per_record: Integer = Field(
        1_000_000,
        ge=1,
        le=MAX_COUNT,
        description="Duels that one `duels` record may count; one with more becomes a dead letter.",
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
    max_output_bytes: Integer = Field(
        2**24,
        ge=1,
        le=2**30,
        description="Bytes of outputs that trigger an earlier commit; bounds memory.",
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


class SparkSettings(Section):
    """`streamduel-spark`: counts duels upstream, for experiments that outgrow a core."""

    topic: TopicName = Field(
        description="The topic of raw records, which ranker services write; the job writes `duels`"
        " records into `source.topic`.",
        examples=["raw-clicks"],
    )
    checkpoint: Annotated[str, Field(min_length=1, max_length=4096, strict=True)] = Field(
        description="Where Spark keeps its state: a directory, or an address such as"
        " `s3a://bucket/path` that all its executors reach.",
        examples=["checkpoint/"],
    )
    slice_ms: Integer = Field(
        10_000,
        ge=100,
        le=86_400_000,
        description="Length of a time slice: each pair gets one `duels` record per slice. Slices of"
        " impressions are at least a tenth of the join window long.",
    )
    lateness_ms: Integer = Field(
        10_000,
        ge=0,
        le=86_400_000,
        description="How far behind the newest record a record may be, by its timestamp; later ones"
        " are dropped and counted.",
    )
    interval_ms: Integer = Field(
        5_000, ge=0, le=3_600_000, description="Time between the starts of two Spark batches."
    )
    partitions: Integer = Field(
        8,
        ge=1,
        le=10_000,
        description="Parts into which the job divides ids, each counted by one core at a time; as"
        " many as there are cores. A checkpoint keeps its number.",
    )


ConnectorSection = Annotated[dict[str, Any], Field(json_schema_extra={"writeOnly": True})]
"""A mapping that may contain a password: no error repeats the text that is in its place."""


class Config(Section):
    """The whole configuration."""

    source: ConnectorSection = Field(description="Where the click log is read.")
    sink: ConnectorSection = Field(description="Where assignments and dead letters are written.")
    snapshots: ConnectorSection = Field(description="Where snapshots are stored.")
    dedupe: DedupeSettings = DedupeSettings()
    time: TimeSettings = TimeSettings()
    limits: LimitSettings = LimitSettings()
    commit: CommitSettings = CommitSettings()
    monitoring: MonitoringSettings | None = MonitoringSettings()
    spark: SparkSettings | None = Field(
        None, description="The Spark job, which counts duels upstream; see docs/scale.md."
    )
    experiments: Annotated[dict[Name, ExperimentSettings], Field(min_length=1)] = Field(
        description="Each experiment by its name, which its records carry."
    )

    @property
    def control_topic(self) -> str | None:
        """The topic of the control records; None if they come in the click log."""
        return self.source.get("control_topic")

    @property
    def control_origin(self) -> ControlOrigin:
        """Where control records come from."""
        if not self.limits.control_records:
            return "off"
        return "topic" if self.control_topic else "log"

    @property
    def log_format(self) -> formats.FormatSettings | None:
        """Settings of the click log's format; None for streamduel's own records."""
        section = self.source.get("format")
        if section is None:
            return None
        section = {"name": section} if isinstance(section, str) else section
        found = formats.FORMATS[section["name"]].model_validate(section, context=FROM_FILE)
        return found.limited(self.limits.max_ranks)


SECTIONS: Final = ("source", "sink", "snapshots")
"""Sections that a connector checks with a model of its own."""


def settings_model(section: str, connector: Connector) -> type[BaseModel]:
    """The model with which a connector checks one of the `SECTIONS`."""
    if section == "source":
        return connector.source_settings
    return connector.sink_settings if section == "sink" else connector.snapshot_settings
